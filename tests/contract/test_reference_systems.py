"""One rule for coordinate reference systems: read, converted to that of the fixes, refused when unknown."""

import json

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from workbench import datasets, replay
from workbench.errors import DataError
from workbench.tables import load

AREA = shapely.box(8.5, 49.9, 8.7, 50.1)
AREAS = geopandas.GeoDataFrame({"place": ["a"]}, geometry=[AREA], crs="EPSG:4326")
METRES = AREAS.to_crs("EPSG:25832")
UNSAID = METRES.set_crs(None, allow_override=True)
DRIVE = pd.DataFrame({"mobile": [1, 1], "t": [1, 2], "lon": [8.6, 9.0], "lat": [50.0, 50.0]})
POINTS = geopandas.GeoDataFrame(
    DRIVE[["mobile", "t"]], geometry=geopandas.points_from_xy(DRIVE["lon"], DRIVE["lat"]), crs="EPSG:4326"
)
MOVED = POINTS.to_crs("EPSG:25832").geometry
PLANE = DRIVE[["mobile", "t"]].assign(x=MOVED.x, y=MOVED.y)
CAFE = {"place": ["a"], "lon": [8.6], "lat": [50.0]}
FOUND = [("a", 1, 1, 2, "unmatch")]


def told(fixes, places, engines=("reference", "local")) -> list[tuple]:
    found = [load(replay("proximity", fixes, places, engine).timelines) for engine in engines]
    assert all(found[0].astype(str).equals(other.astype(str)) for other in found)
    return list(found[0].itertuples(index=False, name=None))


def geoparquet(path, **said):
    """A file whose metadata say just this about the reference system."""
    AREAS.to_parquet(path)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"geo"])
    column = about["columns"]["geometry"]
    column.pop("crs", None)
    column.update(said)
    pq.write_table(table.replace_schema_metadata({b"geo": json.dumps(about).encode()}), path)
    return path


def shapefile(folder, frame=METRES, prj=True):
    frame.to_file(folder / "a.shp")
    if not prj:
        (folder / "a.prj").unlink()
    return folder / "a.shp"


def packaged(folder, frame):
    frame.to_file(folder / "a.gpkg")
    return folder / "a.gpkg"


@pytest.fixture
def ingested(tmp_path):
    """Fixes in metres of which the manifest says where they are measured from."""
    return datasets.ingest(PLANE, tmp_path / "ingested", crs="EPSG:25832").path


def test_geoparquet_without_a_word_is_longitude_and_latitude(tmp_path, ingested):
    said = geoparquet(tmp_path / "a.parquet")
    assert told(DRIVE, said) == FOUND
    assert told(ingested, said) == FOUND
    assert len(datasets.read_places(said)) == 1
    with pytest.raises(DataError, match="the geometry is in degrees"):
        told(PLANE, said)


UNKNOWN = {
    "parquet": lambda folder: geoparquet(folder / "a.parquet", crs=None),
    "frame": lambda folder: UNSAID,
    "arrow": lambda folder: pa.table(UNSAID.to_arrow()),
    "shapefile": lambda folder: shapefile(folder, prj=False),
}


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
@pytest.mark.parametrize("form", UNKNOWN)
def test_an_unknown_system_is_refused_beside_a_known_one_and_accepted_beside_none(tmp_path, ingested, form):
    places = UNKNOWN[form](tmp_path)
    with pytest.raises(DataError, match=r"unknown, and the fixes are lon, lat in degrees; say it, as in"):
        told(DRIVE, places)
    with pytest.raises(DataError, match="unknown, and the fixes are in metres of EPSG:25832"):
        told(ingested, places)
    if form != "parquet":  # whose numbers are degrees
        assert told(PLANE, places) == FOUND
    if form != "arrow":
        with pytest.raises(DataError, match="unknown; say crs="):
            datasets.read_places(places)
        assert len(datasets.read_places(places, to=None)) == 1


KNOWN = {
    "parquet": lambda folder: METRES.to_parquet(folder / "a.parquet") or folder / "a.parquet",
    "lists of numbers": lambda folder: METRES.to_parquet(folder / "a.parquet", geometry_encoding="geoarrow")
    or folder / "a.parquet",
    "frame": lambda folder: METRES,
    "arrow": lambda folder: pa.table(METRES.to_arrow()),
    "shapefile": shapefile,
    "package": lambda folder: packaged(folder, METRES),
    "older GeoJSON": lambda folder: METRES.to_file(folder / "a.geojson") or folder / "a.geojson",
    "GeoJSON": lambda folder: AREAS.to_file(folder / "a.geojson") or folder / "a.geojson",
    "far away": lambda folder: AREAS.to_crs("EPSG:2263"),
    "points": lambda folder: CAFE,
    "prepared points": lambda folder: datasets.read_places(CAFE, to="EPSG:3857"),
    "prepared areas": lambda folder: datasets.read_places(AREAS, to="EPSG:3857"),
}


@pytest.mark.filterwarnings("ignore:GeoDataFrame's CRS is not representable")
@pytest.mark.parametrize("form", KNOWN)
def test_whatever_carries_a_system_is_converted_to_that_of_the_fixes(tmp_path, ingested, form):
    places = KNOWN[form](tmp_path)
    assert told(DRIVE, places) == FOUND
    assert told(ingested, places) == FOUND


def test_plain_text_and_bytes_are_in_the_coordinates_of_the_fixes(ingested):
    for fixes, frame in ((DRIVE, AREAS), (ingested, METRES), (PLANE, METRES)):
        for form in (frame.geometry[0].wkt, frame.geometry[0].wkb):
            assert told(fixes, pd.DataFrame({"place": ["a"], "geometry": [form]})) == FOUND


def test_a_plane_of_its_own_takes_metres_with_a_warning_and_no_other_unit():
    with pytest.warns(UserWarning, match="places are in EPSG:25832; the fixes do not say their reference system"):
        assert told(PLANE, METRES) == FOUND
    with pytest.raises(DataError, match="EPSG:2263, whose unit is the US survey foot"):
        told(PLANE, AREAS.to_crs("EPSG:2263"))


def test_fixes_may_be_points_of_a_reference_system_too(tmp_path):
    POINTS.to_parquet(tmp_path / "fixes.parquet")
    for fixes in (POINTS, POINTS.to_crs("EPSG:25832"), tmp_path / "fixes.parquet"):
        assert told(fixes, AREAS) == FOUND
    with pytest.raises(DataError, match="no coordinate reference system"):
        told(POINTS.set_crs(None, allow_override=True), AREAS)


def test_what_has_no_position_in_the_fixes_system_is_refused():
    nowhere = AREAS.assign(geometry=[shapely.box(400, 95, 410, 99)])
    with pytest.raises(DataError, match="outside the globe"):
        told(DRIVE, nowhere)
    far = geopandas.GeoDataFrame({"place": ["a"]}, geometry=[shapely.box(1e12, 1e12, 2e12, 2e12)], crs="EPSG:25832")
    with pytest.raises(DataError, match="is no position in OGC:CRS84"):
        told(DRIVE, far)


def test_the_rule_is_the_same_on_spark(spark, tmp_path, ingested):
    for places in (geoparquet(tmp_path / "b.parquet"), METRES, CAFE):
        assert told(DRIVE, places, ("spark", "local")) == FOUND
        assert told(ingested, places, ("spark", "local")) == FOUND
    with pytest.raises(DataError, match="is unknown, and the fixes are lon, lat"):
        told(DRIVE, UNSAID, ("spark",))
