"""Bad input gets a clear error, names what was expected, and changes nothing."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.model.worlds import played, table, timelines
from workbench.errors import DataError, ScenarioError
from workbench.model import (
    Enumerated,
    Number,
    Scenario,
    Space,
    above,
    at,
    between,
    column,
    disc,
    held,
    hours,
    integer,
    location,
    milliseconds,
    minutes,
    now,
    one_of,
    other,
    own,
    percentage,
    polygon,
    publication,
    publications,
    region,
    subscription,
    subscriptions,
    tau,
    visits,
)
from workbench.model.relations import name_of
from workbench.replay import replay, resolve

GAS = Space("gas", price=float, brand=str)
CAR = Space("car", fuel=percentage)
WISH = region(GAS, price=5)
HERE = region(location, position=column.position)
NEAR = own.here.within(10, other.site, space=location)
FIX = "mobile t x y\nann 1 0 0"
CAFE = "place x y\ncafe 0 0"
TEN_O_CLOCK = pd.Series(pd.to_datetime(["2008-05-17T10:00:00Z"]))


def scenario(spaces=(location,), *, regions=None, filter=NEAR, publishers=None, subscribers=None):
    publishers = publishers or [publications("places", rows="places", regions={"site": HERE})]
    subscribers = subscribers or [
        subscriptions("mobiles", rows="fixes", regions=regions or {"here": HERE}, filter=filter)
    ]
    return Scenario(list(spaces), publishers, subscribers)


# -- spaces, regions, types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Space("gas"), "space 'gas' has no dimension"),
        (lambda: Space("gas", price="cheap"), "dimension 'price' has the type 'cheap'; expected float, int, str, bool"),
        (lambda: GAS | Space("more", price=str), "'price' is real in one and string in the other"),
        (lambda: region(GAS, prise=5), "uses dimension 'prise'; did you mean 'price'?"),
        (lambda: GAS.type_of("brant"), "space 'gas' has no dimension 'brant'; did you mean 'brand'?"),
        (lambda: region(GAS, zzz=5), "there are 'brand', 'price'"),
        (lambda: region(GAS, price="much"), "'much' is not a number"),
        (lambda: region(GAS, price=True), "True is not a number"),
        (lambda: region(GAS, brand=5), "5 is not a string"),
        (lambda: region(CAR, fuel=120), "120 is outside the domain [0.0,100.0] of percentage"),
        (lambda: region(CAR, fuel=between(-5, 20)), "-5 is outside the domain"),
        (lambda: region(Space("n", n=integer), n=2.5), "[2.5] leaves no integer"),
        (
            lambda: region(Space("cup", size=Enumerated("size", ("small", "large"))), size="huge"),
            "'huge' is outside the domain {'small', 'large'} of size",
        ),
        (lambda: Number("odd", 5, 1), "type 'odd' has the empty domain from 5 to 1"),
        (lambda: between(5, 1), "from 5 to 1, closed='both', is an empty interval"),
        (lambda: between(5, 5, closed="left"), "is an empty interval"),
        (lambda: between(1, 5, closed="open"), "closed='open'; expected 'both', 'left', 'right' or 'neither'"),
        (lambda: one_of(), "one_of() is empty"),
        (lambda: between(0, math.nan), "NaN is not a value"),
        (lambda: region(GAS, price=math.nan), "NaN is not a value"),
        (lambda: region(GAS, brand=math.nan), "NaN is not a value"),
        (lambda: Number("n", math.nan), "empty domain"),
        (lambda: disc((0, 0), math.nan), "radius_m = nan; expected a finite number"),
        (lambda: disc((0, 0), -1), "radius_m = -1; a radius is at least 0"),
        (lambda: disc((0, math.inf), 1), "y = inf; expected a finite number"),
        (lambda: disc((0, 0), "wide"), "radius_m = 'wide'; expected a number"),
        (lambda: polygon([(0, 0), (1, 1), (0, 1), (1, 0)]), "invalid Polygon: Self-intersection"),
        (lambda: region(location, position="here"), "'here' is not a position"),
        (lambda: hours(math.nan), "NaN is not a duration"),
    ],
)
def test_a_value_that_cannot_be_is_refused_when_it_is_made(wrong, says):
    with pytest.raises(ScenarioError) as caught:
        wrong()
    assert says in str(caught.value)


def test_all_faults_of_one_region_are_reported_at_once():
    with pytest.raises(ScenarioError) as caught:
        region(GAS, prise=5, brand=5)
    assert str(caught.value).startswith("2 faults:")
    assert "prise" in str(caught.value) and "5 is not a string" in str(caught.value)


# -- filters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: bool(NEAR), "a filter is no truth value"),
        (lambda: NEAR and NEAR, "Combine filters with & | ~ (not: and, or, not)"),
        (lambda: not NEAR, "a filter is no truth value"),
        (lambda: 1 < own.car["fuel"] < 20, "do not chain them"),
        (lambda: hours(1) < now - tau(NEAR) < hours(5), "do not chain them"),
        (lambda: bool(own.car["fuel"]), "is no truth value; compare it with something"),
        (lambda: NEAR & True, "True is not a filter"),
        (lambda: own.here.within(10, "site", space=location), "'site' is not a region; write own.name"),
        (lambda: own.here.within(-1, other.site, space=location), "a distance is a finite number of at least 0"),
        (lambda: own.here.within(math.nan, other.site, space=location), "a distance is a finite number"),
        (lambda: own.here.nearest(other.site, space=location, k=0), "expected a whole number from 1"),
        (lambda: own.here.mostly_in(other.site, degree=1.5, space=location), "a threshold lies above 0 and up to 1"),
        (lambda: own.wish["brand"] < "b", "only numbers have an order"),
        (lambda: own.wish["price"] < math.nan, "NaN is not a value"),
        (lambda: tau(own.car["fuel"] < 20), "expected a match of two regions"),
        (lambda: visits(NEAR, last=0), "expected a whole number from 1"),
        (lambda: now - tau(NEAR) > 5, "expected a duration such as hours(5)"),
        (lambda: now > hours(5), "compares an instant with a duration"),
        (lambda: held(NEAR, 5), "expected a duration such as minutes(2)"),
        (lambda: held(NEAR, -minutes(1)), "expected a duration such as minutes(2)"),
        (lambda: own.a.related(other.b, by=lambda a, b: 0, at_most=1, space=location), "is not importable by name"),
        (lambda: name_of(lambda a, b: 0), "define it at the top of a module"),
    ],
)
def test_a_filter_that_cannot_mean_anything_is_refused_when_it_is_written(wrong, says):
    with pytest.raises(ScenarioError) as caught:
        wrong()
    assert says in str(caught.value)


# -- scenarios ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda: scenario([Space("locations", position=location.type_of("position"))]),
            "uses space 'location'; did you mean 'locations'?",
        ),
        (lambda: scenario([location, location]), "there are two spaces named 'location'"),
        (
            lambda: scenario(subscribers=[subscriptions("places", rows="fixes", regions={"here": HERE})]),
            "there are two populations named 'places'",
        ),
        (
            lambda: scenario(filter=own.hear.within(5, other.site, space=location)),
            "no region 'hear'; did you mean 'here'?",
        ),
        (
            lambda: scenario([location, GAS], filter=own.here.overlaps(other.site, space=GAS)),
            "region 'here' constrains no dimension of space 'gas' and can never match in it",
        ),
        (lambda: scenario(filter=other.site["price"] < 5), "uses dimension 'price'"),
        (
            lambda: scenario([location, GAS], regions={"here": HERE, "w": WISH}, filter=own.w["prise"] < 5),
            "uses dimension 'prise' of region 'w'; space 'gas' has 'price', 'brand' (did you mean 'price'?)",
        ),
        (
            lambda: scenario(subscribers=[subscriptions("mobiles", rows="fix", regions={"here": HERE})]),
            "takes its rows from 'fix'; did you mean 'fixes'?",
        ),
        (lambda: scenario(subscribers=[subscription("one", regions={"here": HERE})]), "reads the columns ['position']"),
        (
            lambda: scenario(publishers=[subscriptions("places", rows="places", regions={"site": HERE})]),
            "is a subscription population among the publications",
        ),
        (lambda: Scenario([location], [], []), "a scenario needs publications and subscriptions"),
        (
            lambda: scenario(filter=own.here.related(other.site, by="no.such:function", at_most=1, space=location)),
            "function 'no.such:function' cannot be imported",
        ),
        (lambda: publications("a/b", rows="places", regions={"site": HERE}), "a name is a word without '/' and '.'"),
        (lambda: publication("p", regions={}), "has no region"),
        (lambda: publication("p", regions={"site": 5}), "region 'site' of 'p' is 5; expected region(space, ...)"),
        (lambda: publication("p", regions={"site": HERE}, filter=True), "the filter of 'p' is True"),
    ],
)
def test_a_scenario_that_cannot_run_is_refused_when_it_is_built(wrong, says):
    with pytest.raises(ScenarioError) as caught:
        wrong()
    assert says in str(caught.value)


def test_all_faults_of_one_scenario_are_reported_at_once():
    with pytest.raises(ScenarioError) as caught:
        scenario(filter=own.hear.within(5, other.site, space=location) & own.her.within(5, other.site, space=location))
    assert "'hear'" in str(caught.value) and "'her'" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "parameters", "says"),
    [
        ("proximty", None, "there is no built-in scenario 'proximty'; did you mean 'proximity'?"),
        ("proximity", {"radius": 5}, "has no parameter 'radius'; did you mean 'radius_m'?"),
        ("no.such.module:scenario", None, "cannot be imported"),
        ("workbench.scenarios.coffee:scenery", None, "cannot be imported"),
        ("no/such/file.py", None, "there is no scenario file"),
        (lambda: 5, None, "gave int; expected a Scenario"),
    ],
)
def test_an_unknown_scenario_or_parameter_is_refused(given, parameters, says):
    with pytest.raises(ScenarioError) as caught:
        resolve(given, parameters)
    assert says in str(caught.value)


def test_a_finished_scenario_takes_no_parameters():
    with pytest.raises(ScenarioError, match="takes no parameters"):
        resolve(scenario(), {"radius_m": 5})


def test_an_unknown_engine_is_refused_before_anything_is_read():
    with pytest.raises(ScenarioError, match="no engine 'sparc'; did you mean 'spark'"):
        replay("proximity", "no/such/file.parquet", engine="sparc")


# -- tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fixes", "places", "says"),
    [
        ("mobil t x y\nann 1 0 0", CAFE, "fixes have no column 'mobile'; did you mean 'mobil'?"),
        ("mobile time x y\nann 1 0 0", CAFE, "fixes have no column 't'"),
        ("mobile t x y\nann - 0 0", CAFE, "1 rows have no t"),
        ("mobile t x y\n- 1 0 0\nann 1 0 0", CAFE, "1 rows have no mobile"),
        ("mobile t x y lon lat\nann 1 0 0 0 0", CAFE, "fixes have both x, y and lon, lat; drop one of the two"),
        ("mobile t lon lat\nann 1 40 116", "place lon lat\ncafe 40 16", "1 rows lie outside the globe"),
        ("mobile t lon lat\nann 1 40 116", "place lon lat\ncafe 40 16", "are the two swapped, or are these metres"),
        ("mobile t lon lat\nann 1 0 0", CAFE, "some coordinates are x, y in metres and some are lon, lat"),
        ("mobile t x y\nann 1 - 0", CAFE, "fixes: mobile 'ann' has no position at t = 1"),
        ("mobile t x y\nann 1 far 0", CAFE, "column 'x' is not numeric"),
        ("mobile t x y\nann 1 inf 0", CAFE, "column 'x' has infinite values"),
        ("mobile t x y op\nann 1 0 0 ad", CAFE, "fixes: op 'ad' is unknown; did you mean 'add'?"),
        ("mobile t\nann 1", CAFE, "'mobiles' reads the column 'position'"),
        ("mobile t x y\nann 1 0 0", None, "take their rows from places, which were not given"),
        ("mobile t x y\nann 1.5 0 0", CAFE, "t has fractions of a tick"),
        ("mobile t x y\nann noon 0 0", CAFE, "cannot be read as integers or ISO 8601 timestamps"),
        ("mobile t x y\nann 2008-05-17T10:00:00 0 0", CAFE, "such as '2008-05-17T10:00:00'; state the zone"),
        ("mobile t x y\nann 2008-05-17T10:00:00Z 0 0", "place t x y\ncafe 5 0 0", "tell time in different ways"),
        (5, CAFE, "fixes: int is not a table"),
        (pd.DataFrame([["ann", 1, 0.0, 0.0, 0.0]], columns=list("mtxyy")), CAFE, "fixes have two columns named 'y'"),
        ("no/such/file.parquet", CAFE, "there is no file or folder 'no/such/file.parquet'"),
        (FIX, {"place": ["cafe"], "geometry": ["POLYGON ((0 0"]}, "the geometry of 'cafe' cannot be used"),
        (FIX, {"place": ["cafe"], "geometry": ["POINT EMPTY"]}, "the geometry of 'cafe' cannot be used"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(fixes, places, says):
    with pytest.raises(DataError) as caught:
        played(scenario(), fixes, places)
    assert says in str(caught.value)


def test_all_faults_of_one_table_are_reported_at_once():
    with pytest.raises(DataError) as caught:
        played(scenario(), "mobil t x y op\nann 1.5 inf 0 ad", CAFE)
    for fault in ("'mobile'", "fractions", "infinite", "'ad'"):
        assert fault in str(caught.value)


def test_an_attribute_named_id_is_not_mistaken_for_the_key():
    made = played(scenario(), "mobile t x y id\nann 1 0 0 5", "place x y id\ncafe 0 0 cafe-5")
    assert timelines(made) == [("cafe", "ann", 1, None, None)]


def test_null_coordinates_are_allowed_where_op_is_update_and_leave_the_position():
    fixes = table("mobile t x y op\nann 1 0 0 add\nann 2 - - update\nann 3 9 9 remove")
    assert timelines(played(scenario(), fixes, CAFE)) == [("cafe", "ann", 1, 3, "subscription_removed")]


def test_a_value_outside_the_domain_names_the_row():
    with pytest.raises(DataError) as caught:
        played("fuel", "mobile t x y fuel\nann 7 0 0 120", "place x y price\ns 0 0 65")
    assert "at t = 7, fixes/ann" in str(caught.value) and "120 is outside the domain" in str(caught.value)


def test_a_radius_that_is_no_number_names_the_row():
    with pytest.raises(DataError, match=r"places/cafe.*radius_m = 'wide'; expected a number"):
        played("proximity", FIX, "place x y radius_m\ncafe 0 0 wide")


@pytest.mark.parametrize("unit", ["s", None])
def test_a_duration_finer_than_the_tick_is_refused(unit):
    t = TEN_O_CLOCK.dt.as_unit(unit) if unit else [1]
    fixes = pd.DataFrame({"mobile": ["ann"], "t": t, "x": [0.0], "y": [0.0]})
    with pytest.raises(ScenarioError, match="1 s 500 ms is finer than the tick of 1 s"):
        played(scenario(filter=now - tau(NEAR) > milliseconds(1500)), fixes, CAFE)


@pytest.mark.parametrize("instant", ["2008-05-17 10:00:00", 5, "2008-05-17T10:00:00.5Z"])
def test_an_instant_that_the_clock_cannot_tell_is_refused(instant):
    fixes = pd.DataFrame({"mobile": ["ann"], "t": TEN_O_CLOCK.dt.as_unit("s"), "x": [0.0], "y": [0.0]})
    with pytest.raises(ScenarioError, match="time"):
        played(scenario(filter=now >= at(instant)), fixes, CAFE)


def test_a_refused_replay_leaves_the_given_tables_as_they_were():
    fixes, places = table("mobile t x y op\nann 1 - 0 add\nann 2 0 0 -"), table(CAFE)
    before = fixes.copy(deep=True), places.copy(deep=True)
    with pytest.raises(DataError):
        played(scenario(), fixes, places)
    pd.testing.assert_frame_equal(fixes, before[0])
    pd.testing.assert_frame_equal(places, before[1])
    played(scenario(), fixes.iloc[1:], places)
    pd.testing.assert_frame_equal(fixes, before[0])


# -- rows that are set aside -----------------------------------------------------------------------------------


def test_every_row_is_kept_collapsed_or_set_aside():
    fixes = table("""
    mobile t x  y op
    ann    1 0  0 -
    ann    1 0  0 -
    ann    2 0  0 -
    ann    2 1  0 -
    bob    1 0  0 update
    bob    2 0  0 remove
    cid    1 0  0 add
    """)
    made = played(scenario(), fixes, CAFE)
    m = made.metrics
    assert (m["rows_in"], m["rows_collapsed"], m["rows_set_aside"]) == (8, 1, 4)
    kept = m["rows_in"] - m["rows_collapsed"] - m["rows_set_aside"]
    assert kept == 3, "cafe, ann at 1 and cid; bob's update and removal are of nobody"
    assert {line[1] for line in timelines(made)} == {"ann", "cid"}


def test_rows_are_counted_for_every_mix_of_repetition_and_conflict():
    rng = np.random.default_rng(7)
    for _ in range(40):
        n = int(rng.integers(1, 12))
        fixes = pd.DataFrame(
            {
                "mobile": rng.integers(0, 2, n),
                "t": rng.integers(0, 3, n),
                "x": rng.integers(0, 2, n).astype(float),
                "y": 0.0,
            }
        )
        made = played(scenario(), fixes, CAFE)
        groups = fixes.groupby(["mobile", "t"])["x"]
        conflicting = groups.transform("nunique") > 1
        kept = len(fixes[~conflicting].drop_duplicates(["mobile", "t"]))
        m = made.metrics
        assert m["rows_in"] == n + 1
        assert m["rows_set_aside"] == int(conflicting.sum())
        assert m["rows_collapsed"] == n - int(conflicting.sum()) - kept


# -- output ---------------------------------------------------------------------------------------------------


def test_saving_writes_everything_or_nothing(tmp_path, monkeypatch):
    made = played(scenario(), FIX, CAFE)
    out = made.save(tmp_path / "out")
    assert sorted(p.name for p in out.iterdir()) == ["metrics.json", "notifications.parquet", "timelines.parquet"]
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert json.loads(before["metrics.json"])["timelines"] == 1

    written = []

    def fails_the_second_time(table, path):
        written.append(path)
        if len(written) == 2:
            raise OSError("no space left")
        path.write_bytes(b"half")

    monkeypatch.setattr(pq, "write_table", fails_the_second_time)
    for target in (tmp_path / "out", tmp_path / "new"):
        written.clear()
        with pytest.raises(DataError, match="cannot be written: no space left"):
            made.save(target)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "no draft is left behind"


def test_ids_of_several_types_can_be_replayed_and_a_file_that_cannot_hold_them_is_said_so(tmp_path):
    made = played(scenario(), "mobile t x y\nann 1 0 0\n7 1 0 0", CAFE)
    assert [line[1] for line in timelines(made)] == [7, "ann"]
    with pytest.raises(DataError, match="cannot be written"):
        made.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_saving_over_an_older_output_replaces_it_whole(tmp_path):
    played(scenario(), FIX, CAFE).save(tmp_path / "out")
    played(scenario(), "mobile t x y\nann 1 99 0", CAFE).save(tmp_path / "out")
    assert len(pd.read_parquet(tmp_path / "out" / "timelines.parquet")) == 0
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["timelines"] == 0


def test_an_unsatisfiable_price_is_said_with_its_unit():
    gas = Space("gas", price=Number("price", 0, unit="cent"), age=Number("age", 0, unit="year"))
    here = region(gas, price=5, age=5)
    with pytest.raises(ScenarioError, match="compares cent with year"):
        Scenario(
            [gas],
            [publication("p", regions={"r": here}, filter=own.r["price"] < own.r["age"])],
            [subscription("s", regions={"r": region(gas, price=above(1))})],
        )
