"""Every real file that holds fixes goes all the way: ingested, then replayed on Spark as in this process.

The files with 1.6 million rows and more are replayed whole: the ingested data need no shuffle.
"""

import warnings

import pandas as pd
import pytest

from workbench import Scenario, Space, column, other, own, publication, region, subscriptions
from workbench.datasets import ingest, read_places
from workbench.replay import replay
from workbench.tables import TIMELINES, load

PEDESTRIANS = {"columns": {"mobile": "scene+ped"}, "tick_s": 0.01}
SMALL = {"columns": {"mobile": "trajectory_id", "lon": "X", "lat": "Y"}}
PORT = {"place": ["port"], "lon": [9.97], "lat": [57.6]}
DOORS = {"place": ["door", "corner"], "x": [0.0, 5.0], "y": [0.0, 5.0]}
STATION = {"place": ["interchange"], "lon": [-118.24], "lat": [34.06]}
CAMPUS = {"place": ["campus"], "lon": [116.32], "lat": [39.99]}

# fixes, options of the ingest, places (a file, or a table), radius in metres
REPLAYS = [
    ("sf_cabs/cabspotting_10cabs.zip", {}, "places/poi_sf.csv", 100),
    ("sf_cabs/sf_cabs_77.csv.gz", {}, "places/sf_neighborhoods.geojson", 0),
    ("geolife/geolife_user000.zip", {}, "places/poi_beijing_cafes.csv", 300),
    ("geolife/geolife_8users.csv.gz", {}, "places/poi_beijing_cafes.csv", 300),
    ("geolife/movingpandas_geolife_small.csv", SMALL, CAMPUS, 2_000),
    ("tdrive/tdrive_8643taxis_20080202_16h.csv.gz", {}, "places/beijing_districts.geojson", 0),
    ("porto/train.1k.csv", {}, "porto/metaData_taxistandsID_name_GPSlocation.csv", 150),
    ("metr_la", {}, STATION, 10_000),
    ("ais/ais_instants_20210108.csv", {}, PORT, 50_000),
    ("pedestrians/eth_ucy_pedestrians.csv", PEDESTRIANS, DOORS, 2),
]


def both(scenario, fixes, places=None, **parameters) -> pd.DataFrame:
    """The timelines of Spark, which are those of the engine in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # published areas touch themselves, and are mended with a warning
        found = [replay(scenario, fixes, places, engine, parameters) for engine in ("spark", "local")]
    there, here = (load(one.timelines)[[*TIMELINES]] for one in found)
    assert set(there.astype(str).itertuples(index=False)) == set(here.astype(str).itertuples(index=False))
    assert len(there) == len(here) > 0, "the places were chosen so that something happens"
    return here


@pytest.mark.parametrize(("file", "options", "places", "radius_m"), REPLAYS, ids=[row[0] for row in REPLAYS])
def test_a_real_file_is_replayed_on_spark_as_in_this_process(
    spark, shared_data, tmp_path, file, options, places, radius_m
):
    fixes = ingest(shared_data / file, tmp_path / "fixes", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sites = read_places(shared_data / places) if isinstance(places, str) else pd.DataFrame(places)
    both("proximity", fixes.path, sites, radius_m=radius_m)


def test_toll_gate_passages_have_links_instead_of_coordinates_and_are_replayed_on_spark(spark, shared_data, tmp_path):
    road = Space("road", link=str)
    works = publication(
        "works", regions={"site": region(road, link="110")}, filter=other.here.overlaps(own.site, space=road)
    )
    cars = subscriptions("cars", rows="fixes", regions={"here": region(road, link=column.link)})
    fixes = ingest(shared_data / "kdd2017/trajectories_training2.csv", tmp_path / "fixes")
    lines = both(Scenario([road], [works], [cars]), fixes.path)
    on_link = fixes.to_arrow().to_pandas().query("link == '110'")
    assert set(lines["subscription"]) == set(on_link["mobile"])
