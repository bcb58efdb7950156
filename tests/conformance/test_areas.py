"""Areas with holes, of several parts, with combs and vertices in a row: inside, outside and on the border alike."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from workbench import geometry
from workbench.engines import direct, extents, kernels
from workbench.model import shapes
from workbench.replay import replay
from workbench.scenarios import proximity


def area(draw: Random, unit: float = 1.0) -> shapely.Geometry:
    """Squares of a chessboard put together: holes, several parts, parts that touch at corners, a comb at times."""
    cells = [shapely.box(x, y, x + 1, y + 1) for x in range(6) for y in range(6) if draw.random() < 0.55]
    if draw.random() < 0.3:
        cells += [shapely.Polygon([(x, 0), (x + 0.5, 6), (x + 1, 0)]) for x in range(draw.randrange(1, 6))]
    if draw.random() < 0.5:
        cells.append(shapely.Point(3, 3).buffer(2.2, quad_segs=draw.randrange(1, 24)))
    whole = shapely.union_all(cells or [shapely.box(0, 0, 1, 1)])
    return shapely.transform(whole, lambda xy: xy * unit)


@given(st.integers(0, 2**32))
def test_slabs_say_what_all_edges_say(seed: int) -> None:
    draw = Random(seed)
    made = [shapes.shape(area(draw)) for _ in range(2)]
    slabs = extents.chains_of(made)[-1]
    assert len(slabs.offsets) > len(made), "more than one slab each"
    vertices = [(x, y) for shape in made for x, y in zip(shape.xs, shape.ys, strict=True)]
    points = [(draw.randrange(-1, 14) / 2, draw.randrange(-1, 14) / 2) for _ in range(40)]
    points += [(draw.uniform(-1, 7), draw.uniform(-1, 7)) for _ in range(20)]
    points += [draw.choice(vertices) for _ in range(10)] + [(draw.uniform(-1, 7), draw.choice(vertices)[1])]
    for c, shape in enumerate(made):
        for x, y in points:
            assert kernels.in_area(x, y, c, *slabs) == geometry.point_in_polygon(x, y, *shape.chains)


@pytest.mark.parametrize("tall", [1e-310, 1e305])
def test_areas_too_flat_or_too_tall_to_be_divided(tall: float) -> None:
    shape = shapes.shape(shapely.Polygon([(0, 0), (1, 0), (2, tall), (1, tall), (0.5, tall), (0, tall)]))
    slabs = extents.chains_of([shape])[-1]
    for x in (-1.0, 0.0, 1.0, 3.0):
        for y in (-1.0, 0.0, tall / 2, tall):
            assert kernels.in_area(x, y, 0, *slabs) == geometry.point_in_polygon(x, y, *shape.chains)


@pytest.mark.parametrize("seed", range(12))
def test_areas_give_the_tables_of_the_reference(seed: int, tmp_path: Path) -> None:
    draw = Random(seed)
    planar = draw.random() < 0.5
    unit, names = (1.0, ("x", "y")) if planar else (0.001, ("lon", "lat"))
    places = pd.DataFrame({"place": [1, 2, 3], "geometry": [area(draw, unit).wkb for _ in range(3)]})
    rows = [
        {"mobile": m, "t": t, names[0]: draw.randrange(-1, 14) / 2 * unit, names[1]: draw.randrange(-1, 14) / 2 * unit}
        for m in range(4)
        for t in range(1, 40)
    ]
    fixes = pd.DataFrame(rows)
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    assert direct.run(proximity.scenario(), tmp_path / "fixes.parquet", places) is not None
    judge = replay("proximity", fixes, places, engine="reference")
    assert len(judge.timelines)
    for given_ in (tmp_path / "fixes.parquet", fixes):
        assert_frame_equal(replay("proximity", given_, places).timelines, judge.timelines, check_exact=True)


def test_a_distance_that_rounds_to_nothing_is_outside() -> None:
    # The slope's nearest point rounds to p itself, but exactly p lies beside the edge.
    triangle = shapes.shape(shapely.Polygon([(0, 0), (3, 1), (0, 1)]))
    beside = [(x, np.nextafter(x / 3, -1)) for x in np.linspace(0.1, 2.9, 200)]
    rounded = [p for p in beside if geometry.planar_edges_squared(*p, *triangle.chains) == 0.0]
    assert rounded
    for p in rounded:
        assert shapes.within(triangle, shapes.point(*p), 0.0, geometry.PLANAR) == geometry.point_in_polygon(
            *p, *triangle.chains
        )
