"""Fixes and places through the files that others write, against a brute-force calculation of proximity.

The calculation shares nothing with the package: the state at each instant, all pairs, shapely for areas and the
haversine for distances.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from workbench import datasets, replay
from workbench.errors import DataError

EARTH_M = 6_371_000.0
START = pd.Timestamp("2026-03-29T00:00:00Z")
CASES = 40


def near(at, place, radius, degrees) -> bool:
    if not isinstance(place, tuple):
        return bool(place.covers(shapely.Point(at)))
    if not degrees:
        return (at[0] - place[0]) ** 2 + (at[1] - place[1]) ** 2 <= radius**2
    lon, lat, to_lon, to_lat = map(math.radians, (*at, *place))
    h = math.sin((to_lat - lat) / 2) ** 2 + math.cos(lat) * math.cos(to_lat) * math.sin((to_lon - lon) / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(h)) <= radius


def state(rows, at) -> dict:
    """What exists at an instant: the last known cells of each id."""
    found: dict = {}
    for row in sorted(rows, key=lambda r: -1 if r["t"] is None else r["t"]):
        if row["t"] is not None and row["t"] > at:
            break
        if row["op"] == "remove":
            found.pop(row["id"])
        else:
            found[row["id"]] = found.get(row["id"], {}) | {k: v for k, v in row.items() if v is not None}
    return found


def expected(fixes, places, radius, degrees) -> list[tuple]:
    lines, began, before = [], {}, set()
    for at in sorted({r["t"] for r in fixes + places} - {None}):
        mobiles, shops = state(fixes, at), state(places, at)
        now = {
            (p, m)
            for p, place in shops.items()
            for m, mobile in mobiles.items()
            if near(mobile["at"], place["at"], place.get("radius_m", radius), degrees)
        }
        began |= dict.fromkeys(now - before, at)
        for p, m in before - now:
            gone = "publication_removed" if p not in shops else "unmatch"
            lines.append((p, m, began[p, m], at, gone if m in mobiles else "subscription_removed"))
        before = now
    return sorted([*lines, *((p, m, began[p, m], None, None) for p, m in before)], key=str)


def world(draw: random.Random, degrees: bool, areas: bool) -> tuple[list[dict], list[dict]]:
    """A few mobiles and places on a coarse grid, so that distances are often exactly the radius."""

    def spot():
        x, y = draw.randint(-5, 5), draw.randint(-5, 5)
        return (round(8.6 + x * 0.001, 6), round(49.9 + y * 0.001, 6)) if degrees else (float(x), float(y))

    def site():
        x, y = spot()
        d = 0.002 if degrees else 2.0
        if not areas or draw.random() < 0.5:
            return (x, y)
        hole = shapely.box(x - d / 2, y - d / 2, x + d / 2, y + d / 2)
        area = shapely.box(x - d, y - d, x + d, y + d)
        return draw.choice([area, area.difference(hole), area.union(shapely.box(x + 2 * d, y, x + 3 * d, y + d))])

    def history(name, where, radii):
        rows, alive = [], False
        for t in [*draw.choice([[None], []]), *sorted(draw.sample(range(1, 25), draw.randint(1, 6)))]:
            if alive and draw.random() < 0.15:
                rows.append({"id": name, "t": t, "op": "remove", "at": None, "radius_m": None})
                alive = False
                continue
            still = alive and draw.random() < 0.2
            op = "update" if still else draw.choice([None, "update" if alive else "add"])
            rows.append({"id": name, "t": t, "op": op, "at": None if still else where(), "radius_m": radii(still)})
            alive = True
        return rows

    own = [150.0, 400.0] if degrees else [3.0, 5.0]
    fixes = [r for m in range(draw.randint(1, 4)) for r in history(2**53 + m, spot, lambda _: None)]
    places = [
        r
        for p in range(draw.randint(1, 4))
        for r in history(f"p{p}", site, lambda still: draw.choice([None, *own]) if draw.random() < 0.5 else None)
    ]
    return [r | {"t": r["t"] or 0} for r in fixes], places


def tables(fixes, places, degrees, stamps, shapes) -> tuple[pd.DataFrame, pd.DataFrame]:
    axes = ("lon", "lat") if degrees else ("x", "y")

    def base(rows, key):
        frame = pd.DataFrame({key: [r["id"] for r in rows], "t": pd.array([r["t"] for r in rows], "Int64")})
        if stamps:
            minutes = pd.to_timedelta(frame["t"].astype("float64"), unit="min").dt.round("s")
            frame["t"] = (START + minutes).astype(stamps)
        return frame.assign(op=pd.Series([r["op"] for r in rows], dtype=object))

    mobile, place = base(fixes, "mobile"), base(places, "place")
    for i, axis in enumerate(axes):
        mobile[axis] = [np.nan if r["at"] is None else r["at"][i] for r in fixes]
    place["radius_m"] = [r["radius_m"] for r in places]
    if shapes is None:
        for i, axis in enumerate(axes):
            place[axis] = [np.nan if r["at"] is None else r["at"][i] for r in places]
    else:
        found = [shapely.Point(r["at"]) if isinstance(r["at"], tuple) else r["at"] for r in places]
        place["geometry"] = pd.Series([None if g is None else shapes(g) for g in found], dtype=object)
    return mobile, place


def written(frame: pd.DataFrame, folder: Path, form: str, draw: random.Random):
    frame = frame.sample(frac=1, random_state=draw.randint(0, 999))
    name = folder / frame.columns[0]
    if form == "csv":
        frame.to_csv(name.with_suffix(".csv"), index=False)
        return name.with_suffix(".csv")
    if form == "parquet":
        frame.to_parquet(name.with_suffix(".parquet"), index=False)
        return name.with_suffix(".parquet")
    if form == "folder":
        name.mkdir()
        for part in range(2):
            frame.iloc[part::2].to_parquet(name / f"{part}.parquet", index=False)
        return name
    if form == "ingested":
        return datasets.ingest(frame, folder / "ingested", buckets=draw.choice([1, 5]))
    return pa.Table.from_pandas(frame, preserve_index=False)


SHAPES = {
    "wkt": (lambda g: g.wkt, ("csv", "parquet", "arrow")),
    "wkb": (lambda g: g.wkb, ("parquet", "folder", "arrow")),
    "hexadecimal": (lambda g: g.wkb_hex, ("csv", "parquet")),
    "geojson": (shapely.to_geojson, ("csv", "parquet")),
}
TIMES = (None, "datetime64[us, UTC]", "datetime64[ns, UTC]", "datetime64[ms, Europe/Berlin]")


@pytest.mark.parametrize("case", range(CASES))
def test_files_of_many_kinds_give_the_timelines_of_a_brute_force_calculation(case, tmp_path):
    draw = random.Random(case)
    degrees, areas, stamps = draw.random() < 0.5, draw.random() < 0.6, draw.choice(TIMES)
    radius = 300.0 if degrees else 4.0
    fixes, places = world(draw, degrees, areas)
    shapes, forms = draw.choice(list(SHAPES.values())) if areas else (None, ("csv", "parquet", "arrow"))
    mobile, place = tables(fixes, places, degrees, stamps, shapes)
    moving = written(mobile, tmp_path, draw.choice(("csv", "parquet", "folder", "ingested", "arrow")), draw)
    standing = written(place, tmp_path, draw.choice(forms), draw)
    truth = expected(fixes, places, radius, degrees)
    for engine in ("reference", "local"):
        found = replay("proximity", moving, standing, engine, {"radius_m": radius}).timelines
        for name in ("tau", "pi"):
            ticks = found[name] if stamps is None else (found[name] - START) / pd.Timedelta("1min")
            found[name] = [None if pd.isna(t) else int(t) for t in ticks]
        rows = found.astype(object).where(found.notna(), None).itertuples(index=False, name=None)
        assert sorted(rows, key=str) == truth, engine


AREA = shapely.box(8.5, 49.9, 8.7, 50.1)
PASSING = {"mobile": [1, 1], "t": [1, 2], "lon": [8.6, 9.0], "lat": [50.0, 50.0]}
CAFE = {"place": ["a"], "lon": [8.6], "lat": [50.0]}


def told(places, fixes=PASSING) -> list[tuple]:
    one, two = (replay("proximity", fixes, places, engine).timelines for engine in ("reference", "local"))
    assert one.equals(two)
    return one[["publication", "subscription", "tau"]].values.tolist()


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857", "EPSG:25832", "EPSG:4258"])
@pytest.mark.parametrize("suffix", ["parquet", "gpkg", "frame"])
def test_areas_in_any_reference_system_under_any_name_of_their_column(tmp_path, crs, suffix):
    frame = geopandas.GeoDataFrame({"place": ["a"]}, geometry=[AREA], crs="EPSG:4326").to_crs(crs)
    frame = frame.rename_geometry("footprint") if suffix != "gpkg" else frame
    path = tmp_path / f"areas.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix == "gpkg":
        frame.to_file(path)
    assert told(frame if suffix == "frame" else path) == [["a", 1, 1]]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_well_known_binary_in_whatever_holds_bytes(kind):
    assert told(pd.DataFrame({"place": ["a"], "geometry": [kind(AREA.wkb)]})) == [["a", 1, 1]]


def test_a_geometry_counts_more_than_the_point_beside_it():
    both = pd.DataFrame({"place": ["a", "b"], "lon": [0.0, 8.6], "lat": [0.0, 50.0], "geometry": [AREA.wkt, None]})
    with pytest.warns(UserWarning, match="1 rows have coordinates and a geometry, such as 'a'; their geometry counts"):
        assert told(both) == [["a", 1, 1], ["b", 1, 1]]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(["007", "7"], ["007", "7"]), (["7", "8"], [7, 8]), (["9223372036854775807", "-1"], [-1, 2**63 - 1])],
)
def test_ids_in_a_csv_are_numbers_where_nothing_is_lost_by_it(tmp_path, ids, expected):
    path = tmp_path / "places.csv"
    path.write_text("place,lon,lat\n" + "".join(f"{i},8.6,50.0\n" for i in ids))
    assert sorted((row[0] for row in told(path)), key=str) == sorted(expected, key=str)


def test_times_of_nineteen_digits_beside_empty_ones_are_exact(tmp_path):
    at = 1_600_000_000_000_000_001
    path = tmp_path / "places.csv"
    path.write_text(f"place,t,op,lon,lat\na,,,8.6,50.0\na,{at + 2},remove,,\n")
    lines = replay("proximity", {**PASSING, "t": [at, at + 8]}, path).timelines
    assert lines[["tau", "pi"]].values.tolist() == [[at, at + 2]]
    places = pd.DataFrame({"place": ["a"] * 2, "t": pd.array([None, at + 2], "Int64"), "op": [None, "remove"]})
    places = places.assign(lon=[8.6, None], lat=[50.0, None])
    assert replay("proximity", {**PASSING, "t": [at, at + 8]}, pa.Table.from_pandas(places)).timelines.equals(lines)


def test_ids_of_64_bits_without_a_sign_become_text_where_they_are_too_large():
    small, large = np.array([1, 1], np.uint64), np.array([2**64 - 1] * 2, np.uint64)
    where = pd.DataFrame({"place": ["a"], "lon": [8.6], "lat": [50.0]})
    assert told(where, {**PASSING, "mobile": small}) == [["a", 1, 1]]
    assert told(where, {**PASSING, "mobile": large}) == [["a", str(2**64 - 1), 1]]


def test_empty_tables_give_empty_timelines(tmp_path):
    nobody = tmp_path / "fixes.csv"
    nobody.write_text("mobile,t,lon,lat\n")
    where = pd.DataFrame({"place": ["a"], "lon": [8.6], "lat": [50.0]})
    assert told(where, nobody) == []
    assert told(where.iloc[:0]) == []


def test_what_is_no_geometry_is_named():
    with pytest.raises(DataError, match="the geometry of 'a' cannot be used: MultiPoint"):
        told(pd.DataFrame({"place": ["a"], "geometry": ["MULTIPOINT((0 0), (1 1))"]}))


@pytest.mark.parametrize("at", ["2026-03-29 02:30:00", "2026-10-25 02:30:00"])
def test_a_local_time_that_clocks_skip_or_show_twice_is_named(at):
    with pytest.raises(DataError, match=f"of 'Europe/Berlin': {at} comes twice there, or not at all"):
        replay("proximity", {**PASSING, "t": [at, "2026-12-01 00:00:00"]}, CAFE, zone="Europe/Berlin")


@pytest.mark.parametrize("at", ["2026-03-29 02:30:00", "2026-10-25 02:30:00"])
def test_an_end_that_clocks_skip_or_show_twice_is_named(at):
    stamped = {**PASSING, "t": ["2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z"]}
    with pytest.raises(DataError, match=f"time '{at}' comes twice in 'Europe/Berlin', or not at all"):
        replay("proximity", stamped, CAFE, zone="Europe/Berlin", until=at)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_columns_of_nothing_but_nulls_are_written_as_words(tmp_path, engine):
    """A reader of many outputs would take their type from the first, and refuse the others."""
    stays = {**PASSING, "lon": [8.6, 8.6]}
    for name, fixes, lines in (("stays", stays, 1), ("never", {**PASSING, "lon": [0.0, 0.0]}, 0)):
        out = replay("proximity", fixes, CAFE, engine).save(tmp_path / name)
        for file, words in (("timelines", ["publication", "ended"]), ("notifications", ["kind", "publication"])):
            written = pq.read_table(out / f"{file}.parquet")
            assert len(written) == lines
            assert {written.schema.field(word).type for word in words} == {pa.string()}


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("from_file", [True, False])
def test_ids_keep_their_type_where_nobody_is_told_anything(tmp_path, engine, from_file):
    away = pd.DataFrame({"mobile": [7, 7], "t": [1, 2], "lon": [0.0, 0.0], "lat": [8.6, 8.6]})
    away.to_parquet(tmp_path / "fixes.parquet")
    done = replay("proximity", tmp_path / "fixes.parquet" if from_file else away, CAFE, engine)
    for table in (done.timelines, done.notifications):
        assert not len(table) and table["subscription"].dtype == "int64" and table["publication"].dtype == object
