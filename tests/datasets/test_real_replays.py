"""Real files go all the way: ingested, then replayed on Spark, with the timelines of the engine in this process."""

import warnings

import pandas as pd
import pytest

from workbench.datasets import ingest, read_places
from workbench.replay import replay
from workbench.tables import TIMELINES, load

PEDESTRIANS = {"columns": {"mobile": "scene+ped"}, "tick_s": 0.01}
PORT = {"place": ["port"], "lon": [9.97], "lat": [57.6]}
DOORS = {"place": ["door", "corner"], "x": [0.0, 5.0], "y": [0.0, 5.0]}

# fixes, options of the ingest, places (a file, or a table), radius in metres
REPLAYS = [
    ("sf_cabs/cabspotting_10cabs.zip", {}, "places/poi_sf.csv", 100),
    ("geolife/geolife_user000.zip", {}, "places/poi_beijing_cafes.csv", 300),
    ("tdrive/tdrive_8643taxis_20080202_16h.csv.gz", {}, "places/beijing_districts.geojson", 0),
    ("porto/train.1k.csv", {}, "porto/metaData_taxistandsID_name_GPSlocation.csv", 150),
    ("ais/ais_instants_20210108.csv", {}, PORT, 50_000),
    ("pedestrians/eth_ucy_pedestrians.csv", PEDESTRIANS, DOORS, 2),
]


@pytest.mark.parametrize(("file", "options", "places", "radius_m"), REPLAYS, ids=[row[0] for row in REPLAYS])
def test_a_real_file_is_replayed_on_spark_as_in_this_process(
    spark, shared_data, tmp_path, file, options, places, radius_m
):
    fixes = ingest(shared_data / file, tmp_path / "fixes", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # published areas touch themselves, and are mended with a warning
        sites = read_places(shared_data / places) if isinstance(places, str) else pd.DataFrame(places)
        found = [
            replay("proximity", fixes.path, sites, engine=engine, parameters={"radius_m": radius_m})
            for engine in ("spark", "local")
        ]
    there, here = (set(load(one.timelines)[[*TIMELINES]].astype(str).itertuples(index=False)) for one in found)
    assert there == here
    assert here, "the places were chosen so that something happens"
