"""Places: attributes kept, coordinate reference systems converted or refused, unusable rows counted."""

import geopandas
import pandas as pd
import pytest
import shapely

from workbench.datasets import ingest, report_of
from workbench.datasets.places import read_places, write_places
from workbench.errors import DataError

REAL = [
    ("porto/metaData_taxistandsID_name_GPSlocation.csv", 63),
    ("metr_la/graph_sensor_locations.csv", 207),
    ("places/poi_sf.csv", 4_401),
    ("places/poi_beijing_cafes.csv", 139),
    ("places/sf_neighborhoods.geojson", 37),
    ("places/sf_zip.geo.json", 25),
    ("places/beijing_districts.geojson", 16),
    ("places/nyc_taxi_zones.geojson", 263),
]


@pytest.mark.parametrize(("file", "count"), REAL)
def test_real_places_load_with_their_exact_counts(shared_data, file, count):
    places = read_places(shared_data / file)
    assert len(places) == count
    assert places["place"].is_unique
    assert report_of(places).adds_up


def test_san_francisco_has_its_categories_and_odd_names(shared_data):
    places = read_places(shared_data / "places/poi_sf.csv")
    expected = {
        "fuel": 44,
        "cafe": 436,
        "coffee_chain": 91,
        "food": 2_802,
        "bank": 189,
        "atm": 157,
        "post_box": 520,
        "toilets": 162,
    }
    assert places["category"].value_counts().to_dict() == expected
    assert places["name"].isna().any()
    assert places["name"].str.contains("&", na=False).any()


def areas(crs="EPSG:4326"):
    shapes = [shapely.box(8, 50, 8.1, 50.1), shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), None]
    return geopandas.GeoDataFrame({"name": ["a", "b", "c"], "rooms": [1, 2, 3]}, geometry=shapes, crs=crs)


def test_areas_keep_attributes_and_unusable_shapes_are_repaired_or_counted():
    places = read_places(areas())
    assert places["place"].tolist() == ["a", "b"]
    assert places["rooms"].tolist() == [1, 2]
    assert places.geometry.is_valid.all()
    assert report_of(places).aside == {"geometry unusable": 1}
    assert any("repaired" in note for note in report_of(places).notes)


def test_an_unknown_reference_system_is_refused_and_can_be_said():
    with pytest.raises(DataError, match="unknown; say crs="):
        read_places(areas(None))
    assert len(read_places(areas(None), crs="EPSG:4326")) == 2
    with pytest.raises(DataError, match="metres of an unknown"):
        read_places({"place": [1], "x": [1.0], "y": [2.0]})
    assert read_places({"place": [1], "x": [1.0], "y": [2.0]}, to=None)["x"].tolist() == [1.0]


def test_places_are_converted_to_the_reference_system_of_the_fixes(tmp_path):
    table = pd.DataFrame({"mobile": [1], "t": [1], "x": [500_000.0], "y": [5_500_000.0]})
    fixes = ingest(table, tmp_path / "out", crs="EPSG:32632")
    places = read_places({"place": ["p"], "lon": [9.0], "lat": [49.65]}, to=fixes)
    assert places.columns.tolist() == ["place", "x", "y"]
    assert abs(places["x"][0] - 500_000) < 1e-3
    metres = read_places(areas(), to=fixes)
    assert metres.crs.to_epsg() == 32632
    back = read_places({"place": [1], "x": [500_000.0], "y": [5_500_000.0]}, crs="EPSG:32632")
    assert abs(back["lon"][0] - 9.0) < 1e-9


def test_places_that_change_keep_their_times_and_operations():
    table = {"place": ["s", "s"], "t": ["2024-01-01T08:00:00Z", "2024-01-01T12:00:00Z"], "op": ["add", "update"]}
    places = read_places({**table, "lon": [8.0, None], "lat": [50.0, None], "price": [1.7, 1.8]})
    assert len(places) == 2
    assert places["t"][1] == pd.Timestamp("2024-01-01 12:00", tz="UTC")
    with pytest.raises(DataError, match="local"):
        read_places({"place": ["s"], "t": ["2024-01-01 08:00"], "lon": [8.0], "lat": [50.0]})


def test_ids_that_repeat_are_refused():
    with pytest.raises(DataError, match="1 places share their id, such as 'a'"):
        read_places({"place": ["a", "a"], "lon": [8.0, 8.1], "lat": [50.0, 50.0]})


def test_geoparquet_geopackage_and_well_known_text_are_read(tmp_path):
    good = areas().iloc[:1]
    write_places(read_places(good), tmp_path / "a.parquet")
    assert read_places(tmp_path / "a.parquet").geometry.iloc[0].equals(good.geometry.iloc[0])
    good.to_file(tmp_path / "a.gpkg")
    assert len(read_places(tmp_path / "a.gpkg")) == 1
    (tmp_path / "a.csv").write_text('id,wkt\n7,"LINESTRING (8 50, 8.1 50.1)"\n8,nonsense\n')
    lines = read_places(tmp_path / "a.csv", crs="EPSG:4326")
    assert lines.geometry.geom_type.tolist() == ["LineString"]
    assert report_of(lines).aside == {"geometry unusable": 1}
    write_places(read_places({"place": [1], "lon": [8.0], "lat": [50.0]}), tmp_path / "p.parquet")
    assert read_places(tmp_path / "p.parquet")["lon"].tolist() == [8.0]
    (tmp_path / "bad.geojson").write_text("{")
    with pytest.raises(DataError, match=r"bad\.geojson: cannot be read"):
        read_places(tmp_path / "bad.geojson")


def test_a_place_whose_time_cannot_be_read_is_not_there_from_the_start(tmp_path):
    (tmp_path / "p.csv").write_text("place,t,lat,lon\n1,soon,50,8\n1,2026-01-01T00:00Z,50,8\n2,,50,8\n")
    places = read_places(tmp_path / "p.csv")
    assert places["place"].tolist() == [1, 2]
    assert places["t"].isna().tolist() == [False, True]
    assert report_of(places).aside == {"time unreadable": 1}
    assert report_of(places).adds_up


def test_shapes_are_read_from_every_form_of_text_and_bytes(tmp_path):
    area = shapely.box(8.5, 49.9, 8.7, 50.1)
    forms = (area.wkt, area.wkb_hex, shapely.to_geojson(area), area.wkb, bytearray(area.wkb), area)
    for form in forms:
        places = read_places(pd.DataFrame({"place": [1, 2], "geometry": [form, "no shape"]}), crs="EPSG:4326")
        assert places.geometry.iloc[0].equals(area)
        assert report_of(places).aside == {"geometry unusable": 1}
