"""The weights stage: what is written, what is skipped, and that every stored weight can be
recomputed.
"""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from hades.errors import BadRows
from hades.night.weights.stage import DEFAULT_TAU_DAYS, WeightError, lasting
from hades.settings.tree import DEFAULT_BOOSTS, DEFAULT_PRIORS, PathSettings
from hades.stores.sqlite.store import SqliteStore
from models.weights import NEUTRAL_STEP
from schemas.nodes import RelationType
from tests.contract.examples import everything, put
from tests.unit.hades.night.weights.graphs import TODAY, small_store, weigh


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return small_store(tmp_path / "graph.db")


def stored(store: SqliteStore, source: str, target: str) -> dict:
    (row,) = (
        row
        for row in everything(store, "relations")
        if (row["_from"], row["_to"]) == (f"entities/{source}", f"entities/{target}")
    )
    return row


def config_of(store: SqliteStore, kind: str) -> dict:
    row = config_row(store, kind)
    return {**row, "coefficients": orjson.loads(row["coefficients"])}


def config_row(store: SqliteStore, kind: str) -> dict:
    (row,) = (row for row in everything(store, "weight_config") if row["relation_type"] == kind)
    return row


def test_components_come_from_vectors_type_evidence_and_the_event_date(store: SqliteStore) -> None:
    weigh(store)
    row = stored(store, "b", "c")
    assert row["sim"] == 0.8
    tau = DEFAULT_TAU_DAYS[RelationType.REFERS_TO]
    assert row["weight_components"] == {
        "sim": 0.8,
        "type_prior": 0.5,
        "evidence": 0.5,
        "freshness": round(math.exp(-365 / tau), 6),
    }


def test_a_similar_pair_keeps_its_own_similarity_and_an_association_is_discounted_by_its_strength(
    store: SqliteStore,
) -> None:
    weigh(store)
    assert stored(store, "c", "d")["weight_components"]["sim"] == 0.9
    assert stored(store, "b", "d")["weight_components"]["evidence"] == 0.2


def test_what_is_unknown_counts_the_median_of_what_is_known(store: SqliteStore) -> None:
    report = weigh(store)
    row = stored(store, "a", "bare")
    assert row["sim"] is None
    assert row["weight_components"]["sim"] == report.neutral["sim"] == 0.7
    dated = [
        stored(store, *ends)["weight_components"]["freshness"] for ends in ("ab", "ad", "bc", "ca")
    ]
    middle = sorted(dated)[1:3]
    assert row["weight_components"]["freshness"] == pytest.approx(
        sum(middle) / 2, abs=NEUTRAL_STEP / 2
    )


def test_mentions_weigh_by_count_title_and_kind_of_name(store: SqliteStore) -> None:
    weigh(store)
    found = {row["_to"]: row["weight"] for row in everything(store, "mentions")}
    assert found == {
        "entities/a": pytest.approx(5 / 6),  # two in the text and the title, which counts three
        "entities/b": 0.5,
        "entities/bare": pytest.approx(0.1),
    }


def test_another_week_changes_only_what_has_a_date(store: SqliteStore) -> None:
    weigh(store)
    report = weigh(store, as_of=TODAY + timedelta(days=7))
    assert not report.skipped
    assert report.changed["mentions"] == 0
    assert (
        stored(store, "c", "a")["weight_components"]["freshness"] == 1.0
    )  # an event still to come


def test_weights_depend_on_as_of_and_not_on_the_way_there(tmp_path: Path) -> None:
    straight, around = small_store(tmp_path / "one.db"), small_store(tmp_path / "two.db")
    weigh(around, as_of=datetime(2024, 5, 1, tzinfo=UTC))
    weigh(around, inputs="other")
    one, two = weigh(straight), weigh(around)
    assert one.generation == two.generation
    assert lasting(vars(one)) == lasting(vars(two))
    for name in ("relations", "mentions", "weight_config"):
        assert everything(straight, name) == everything(around, name)


def test_a_moment_without_time_zone_is_refused(store: SqliteStore) -> None:
    with pytest.raises(WeightError, match="no time zone"):
        weigh(store, as_of=datetime(2026, 1, 1))


def test_every_type_is_seeded_with_prior_time_constant_and_boost(store: SqliteStore) -> None:
    weigh(store)
    rows = {row["relation_type"]: row for row in everything(store, "weight_config")}
    assert set(rows) == {str(kind) for kind in RelationType}
    for kind in RelationType:
        assert rows[kind]["type_prior"] == DEFAULT_PRIORS[kind]
        assert rows[kind]["tau_days"] == DEFAULT_TAU_DAYS[kind]
        assert rows[kind]["relation_boost"] == DEFAULT_BOOSTS[kind]


def test_what_a_person_wrote_into_weight_config_is_kept_and_used(store: SqliteStore) -> None:
    weigh(store)
    mine = {
        "_key": "cites",
        "relation_type": "cites",
        "type_prior": 0.1,
        "tau_days": 10.0,
        "relation_boost": 0.6,
    }
    put(store, "weight_config", {**mine, "coefficients": '{"sim":1.5}'})
    report = weigh(store)
    assert not report.skipped
    row = config_of(store, "cites")
    assert (row["type_prior"], row["tau_days"], row["coefficients"]["sim"]) == (0.1, 10.0, 1.5)
    parts = stored(store, "a", "b")["weight_components"]
    assert parts["type_prior"] == 0.1
    assert parts["freshness"] == round(math.exp(-30 / 10), 6)
    assert weigh(store).skipped


def test_a_prior_of_the_settings_takes_effect_in_a_home_that_was_weighed(
    store: SqliteStore,
) -> None:
    weigh(store)
    put(store, "weight_config", {**config_row(store, "refers_to"), "type_prior": 0.1})
    weigh(store)
    raised = PathSettings(relation_prior={"cites": 1.0, "refers_to": 0.9})
    report = weigh(store, raised)
    assert not report.skipped
    assert stored(store, "a", "b")["weight_components"]["type_prior"] == 1.0
    assert stored(store, "b", "c")["weight_components"]["type_prior"] == 0.1  # a person's
    assert config_of(store, "cites")["type_prior"] == 1.0
    assert weigh(store, raised).skipped
    weigh(store)  # without the setting the default is back
    assert stored(store, "a", "b")["weight_components"]["type_prior"] == 0.7


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"relation_type": "likes"}, "likes, which is not a relation type"),
        ({"type_prior": 7.0}, r"weight_config/cites: type_prior is 7\.0"),
        ({"coefficients": '{"colour":1}'}, "coefficient for colour"),
        ({"coefficients": '{"sim":"much"}'}, "sim is 'much'"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named(
    store: SqliteStore, row: dict, message: str
) -> None:
    usual = {
        "_key": "cites",
        "relation_type": "cites",
        "type_prior": 0.5,
        "tau_days": 10.0,
        "relation_boost": 0.6,
    }
    put(store, "weight_config", {**usual, **row})
    with pytest.raises(WeightError, match=message):
        weigh(store)


def test_a_boost_of_the_settings_changes_costs_and_no_weight(store: SqliteStore) -> None:
    first = weigh(store)
    report = weigh(store, PathSettings(relation_boost={"cites": 0.3}))
    assert report.generation == first.generation
    assert report.changed == {"relations": 2, "mentions": 0}
    row = stored(store, "a", "b")
    assert row["cost"] == pytest.approx(-math.log(row["weight"] * 0.3), rel=1e-6)


def test_a_weighing_that_fails_in_its_transaction_has_not_happened(store: SqliteStore) -> None:
    weigh(store)
    before = {
        name: everything(store, name) for name in ("mentions", "weight_config", "build_stages")
    }
    (lost, *left) = everything(store, "relations")

    def forget_one(stage: str, done: int, total: int | None) -> None:
        if done == 2:  # weighed, not yet written
            store.delete("relations", keys=[lost["_key"]])

    with pytest.raises(BadRows, match=lost["_key"]):
        weigh(store, as_of=datetime(2027, 1, 1, tzinfo=UTC), progress=forget_one)
    assert {name: everything(store, name) for name in before} == before
    assert everything(store, "relations") == left


def test_a_store_without_edges_is_weighed_too(tmp_path: Path) -> None:
    store = small_store(tmp_path / "empty.db")
    for name in ("relations", "mentions"):
        store.delete(name, keys=[row["_key"] for row in everything(store, name)])
    report = weigh(store)
    assert (report.rows, report.bias, report.quantiles) == (
        {"relations": 0, "mentions": 0},
        0.0,
        {},
    )
