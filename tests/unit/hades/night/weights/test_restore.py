"""Three nights, and back to each of them: the store is what it was, and the next build goes on from
there.
"""

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades import stage_ledger
from hades.night import model_versions as artifact
from hades.night.contracts.check import check_contract
from hades.night.model_versions import (
    CHAMPION,
    WEIGHTS_MODEL,
    log_weights,
    promote,
    restore_weights,
    retain,
    version_before,
    version_of,
)
from hades.night.weights.stage import COEFFICIENTS, WeightError, lasting, read_edges
from hades.ports.services import TrackingError
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import MODEL, everything, put, relation
from tests.unit.hades.night.contexts import context_of
from tests.unit.hades.night.weights.graphs import (
    TODAY,
    mlflow_registry,
    registry,
    small_store,
    weigh,
    weigh_and_log,
)

WEIGHED = ("relations", "mentions", "weight_config")
NIGHTS = [datetime(2026, 1, day, tzinfo=UTC) for day in (5, 12, 19)]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return small_store(tmp_path / "graph.db")


def tables(store: SqliteStore) -> dict:
    return {name: everything(store, name) for name in WEIGHED}


def edit(store: SqliteStore) -> None:
    row = {
        "_key": "cites",
        "relation_type": "cites",
        "type_prior": 0.2,
        "tau_days": 50.0,
        "relation_boost": 0.6,
    }
    put(store, "weight_config", row)


def test_a_version_has_a_signature_that_mlflow_reads(store: SqliteStore, tmp_path: Path) -> None:
    from mlflow.models import Model

    tracker = mlflow_registry(tmp_path / "registry")
    version = weigh_and_log(store, tracker, NIGHTS[0])
    model = Model.load(str(tracker.fetch("hades-weights", version).parent))
    assert set(model.signature.outputs.input_names()) == {"weight", "weight_components", "cost"}
    assert {"type", "sim"} <= set(model.signature.inputs.input_names())
    assert set(model.flavors) == {"hades"}  # no flavour that would run code


def test_each_of_three_nights_can_be_restored_byte_for_byte(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    was, versions = [], []
    for night in NIGHTS:
        if night == NIGHTS[1]:
            edit(store)
        report = weigh(store, as_of=night)
        versions.append(log_weights(store, tracker, as_of=night))
        was.append((tables(store), report.generation))
    assert versions == ["1", "2", "3"]
    for night in (0, 2, 1):
        restored = restore_weights(context_of(store, MODEL), tracker, versions[night])
        assert restored == {"restored": 10, "weighed": 0, "missing": 0}
        done = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)
        assert done is not None
        assert (tables(store), done.generation) == was[night]
    assert store.check() == []


def test_after_a_restore_the_next_build_weighs_again(store: SqliteStore, tmp_path: Path) -> None:
    tracker = registry(tmp_path / "registry")
    weigh_and_log(store, tracker, NIGHTS[0])
    second = weigh(store, as_of=NIGHTS[1])
    restore_weights(context_of(store, MODEL), tracker, "1")
    done = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)
    assert done is not None
    assert (done.digest, done.as_of) == ("restored from hades-weights version 1", NIGHTS[0])
    assert (
        log_weights(store, tracker, as_of=NIGHTS[1]) == "1"
    )  # publishing what was restored registers nothing new
    again = weigh(store, as_of=NIGHTS[1])
    assert (again.skipped, again.generation) == (False, second.generation)


def test_edges_that_came_since_are_weighed_by_the_parameters_of_the_version(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    first = weigh(store, as_of=NIGHTS[0])
    assert log_weights(store, tracker, as_of=NIGHTS[0]) == "1"
    promote(tracker, "1", "g1")
    (gone, *_) = everything(store, "relations")
    store.delete("relations", keys=[gone["_key"]])
    put(store, "relations", relation("d", "c", "cites"))
    edit(store)  # another prior, which the first version did not know
    weigh_and_log(store, tracker, NIGHTS[1], "g2")
    restored = restore_weights(context_of(store, MODEL), tracker, "1")
    assert restored == {"restored": 9, "weighed": 1, "missing": 1}
    (new,) = (row for row in everything(store, "relations") if row["_from"] == "entities/d")
    parts = new["weight_components"]
    assert (parts["type_prior"], parts["freshness"]) == (0.7, first.neutral["freshness"])
    logit = first.bias + sum(COEFFICIENTS[part] * value for part, value in parts.items())
    assert new["weight"] == pytest.approx(1.0 / (1.0 + math.exp(-logit)), rel=1e-5)
    assert check_contract(store, "weights").findings == ()
    # What the store holds now is neither of the two versions, so it is registered as its own.
    assert log_weights(store, tracker, as_of=NIGHTS[1]) == "3"
    promote(tracker, "3", "g3")
    assert tracker.known(WEIGHTS_MODEL, "3").tags["restored_from"] == "1"
    assert version_before(tracker) is None  # nothing served before the first version
    assert restore_weights(context_of(store, MODEL), tracker, "3")["restored"] == 10


def test_the_same_data_is_logged_once_and_found_by_its_snapshot(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    version = weigh_and_log(store, tracker, snapshot="g1")
    assert weigh_and_log(store, tracker) == version
    promote(tracker, version, "g2")  # another hierarchy, the same weights
    (only,) = tracker.versions(WEIGHTS_MODEL)
    assert (only.aliases, only.tags["snapshot"]) == ((CHAMPION,), "g2")
    assert [version_of(tracker, name) for name in ("g1", "g2", "g3")] == [version, version, None]


def test_the_version_before_is_the_last_older_one_that_served(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    with pytest.raises(WeightError, match="serves yet"):
        version_before(tracker)
    served = (True, False, True)
    for night, serves in zip(NIGHTS, served, strict=True):
        weigh_and_log(store, tracker, night, f"g{night.day}" if serves else None)
    assert version_before(tracker) == "1"
    promote(tracker, "1", "g10")
    assert version_before(tracker) is None


def test_retention_spares_what_an_alias_or_a_kept_snapshot_names(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    nights = [datetime(2026, 1, day, tzinfo=UTC) for day in (5, 12, 19, 26)]
    for night in nights:
        weigh_and_log(store, tracker, night, f"g{night.day}")
    promote(tracker, "1", "g1")
    assert retain(tracker, 1, snapshots=["g12"]) == ["3"]
    assert [one.version for one in tracker.versions(WEIGHTS_MODEL)] == ["4", "2", "1"]
    with pytest.raises(WeightError, match="keep is 0"):
        retain(tracker, 0)
    with pytest.raises(TrackingError, match="no version 3; registered: 4, 2, 1"):
        restore_weights(context_of(store, MODEL), tracker, "3")


def test_weights_that_changed_after_weighing_are_not_logged(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    with pytest.raises(WeightError, match="nothing has been weighed"):
        log_weights(store, tracker, as_of=TODAY)
    weigh(store)
    put(store, "relations", relation("d", "c", "cites"))
    with pytest.raises(WeightError, match="edges changed since"):
        log_weights(store, tracker, as_of=TODAY)
    assert tracker.versions(WEIGHTS_MODEL) == []


def test_the_file_is_the_same_bytes_for_the_same_weights(
    store: SqliteStore, tmp_path: Path
) -> None:
    report = weigh(store)
    rows = {name: read_edges(store, name) for name in artifact.COLUMNS}
    for name in ("one", "two"):
        artifact.write(tmp_path / name, (rows, [], lasting(vars(report))))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_that_is_no_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.parquet").write_bytes(b"not Parquet at all")
    with pytest.raises(WeightError, match="cannot be read as Parquet"):
        artifact.read_weights_file(tmp_path / "w.parquet")
