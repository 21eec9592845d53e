"""Weights that learn from judged answers: bounded, tested on held-out questions, replayed, and
undone.
"""

import math
from datetime import timedelta
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hades.night import model_versions as artifact
from hades.night.contracts.check import check_contract
from hades.night.model_versions import log_weights, restore_weights
from hades.stage_ledger import WEIGHTS, last_completion
from hades.stores.sqlite.store import SqliteStore
from schemas.telemetry import FORGOTTEN, JudgedRanks
from tests.contract.examples import MODEL, everything
from tests.unit.hades.night.contexts import context_of
from tests.unit.hades.night.weights.graphs import TODAY, registry, small_store, weigh
from tests.unit.hades.night.weights.judged import (
    AB,
    AD,
    log,
    preferring,
    put_logs,
    put_second_chunk,
    questions,
)

WEIGHED = ("relations", "mentions", "weight_config")


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return small_store(tmp_path / "graph.db")


def relation(store: SqliteStore, named: tuple[str, ...]) -> dict:
    (row,) = (
        row for row in everything(store, "relations") if f"relations/{row['_key']}" == named[0]
    )
    return row


def weights(store: SqliteStore) -> dict:
    return {
        name: [(row["_key"], row["weight"]) for row in everything(store, name)]
        for name in WEIGHED[:2]
    }


def test_what_was_preferred_gains_what_was_not_loses_and_nothing_else_moves(
    store: SqliteStore,
) -> None:
    weigh(store)
    before = {row["_key"]: row["weight"] for row in everything(store, "relations")}
    put_logs(store, preferring(2, questions(5, 20)))
    report = weigh(store)
    good, other = relation(store, AD), relation(store, AB)
    assert good["weight"] > before[good["_key"]] + 0.02
    assert other["weight"] < before[other["_key"]] - 0.02
    assert 0.1 < good["learned"] <= 1.5
    after = {row["_key"]: row["weight"] for row in everything(store, "relations")}
    assert {key for key in after if after[key] != before[key]} == {good["_key"], other["_key"]}
    assert report.changed == {"relations": 2, "mentions": 0}
    assert report.learned["moved"] == {"relations": 2, "mentions": 0}


def test_every_weight_recomputes_from_its_components_and_what_was_learned(
    store: SqliteStore,
) -> None:
    put_logs(store, preferring(2, questions(5, 20)))
    weigh(store)
    config = {
        row["relation_type"]: orjson.loads(row["coefficients"])
        for row in everything(store, "weight_config")
    }
    for row in everything(store, "relations"):
        coefficients, parts = config[row["type"]], row["weight_components"]
        total = (
            coefficients["bias"]
            + sum(coefficients[name] * parts[name] for name in parts)
            + (row["learned"] or 0.0)
        )
        assert row["weight"] == pytest.approx(1 / (1 + math.exp(-total)), rel=1e-6)
    assert check_contract(store, "weights").findings == ()
    store.patch("relations", pa.table({"_key": [relation(store, AD)["_key"]], "learned": [0.123]}))
    (finding,) = check_contract(store, "weights").findings
    assert finding.rule == "weights.weight_recomputes"


def test_a_preferred_passage_lifts_its_mentions(store: SqliteStore) -> None:
    put_second_chunk(store)
    weigh(store)
    before = {row["_to"]: row["weight"] for row in everything(store, "mentions")}
    passages = ["doc_chunks/c1", "doc_chunks/c2"]
    asked = enumerate(questions(5, 20))
    put_logs(
        store,
        [
            log(one, paths=(), passages=passages, good=JudgedRanks(passages=(2,)), minutes=at)
            for at, one in asked
        ],
    )
    report = weigh(store)
    after = {row["_to"]: row["weight"] for row in everything(store, "mentions")}
    assert all(after[f"entities/{one}"] > before[f"entities/{one}"] for one in "cd")
    assert all(after[f"entities/{one}"] < before[f"entities/{one}"] for one in ("a", "b", "bare"))
    assert report.learned["moved"] == {"relations": 0, "mentions": 5}


def test_a_night_without_a_new_judgement_does_nothing_and_one_with_it_weighs_again(
    store: SqliteStore,
) -> None:
    put_logs(store, preferring(2, questions(5, 20)))
    first = weigh(store)
    assert weigh(store).skipped
    put_logs(store, [log("merely asked", minutes=900)])
    again = weigh(store)
    assert again.skipped
    assert again.learned == first.learned
    put_logs(store, preferring(2, ["one more question"], first_minute=901))
    assert not weigh(store).skipped


def test_the_order_and_the_nights_in_which_logs_arrive_do_not_matter(tmp_path: Path) -> None:
    straight, nightly = small_store(tmp_path / "one.db"), small_store(tmp_path / "two.db")
    asked = questions(6, 24)
    logs = preferring(2, asked[:25]) + preferring(1, asked[25:], first_minute=25)
    put_logs(straight, logs)
    once = weigh(straight)
    for part in (logs[20:], logs[7:20], logs[:7]):
        put_logs(nightly, part)
        last = weigh(nightly)
    assert (once.generation, once.learned) == (last.generation, last.learned)
    for name in WEIGHED:
        assert everything(straight, name) == everything(nightly, name)


def test_questions_that_are_held_out_never_teach(store: SqliteStore) -> None:
    before = weigh(store)
    put_logs(store, preferring(2, questions(30, 0)))
    report = weigh(store)
    assert report.generation == before.generation
    assert (report.learned["kept"], report.learned["turns"]) == (False, 30)
    assert "question that teaches" in report.learned["why"]


def test_what_orders_held_out_choices_worse_is_not_used_and_the_reason_is_told(
    store: SqliteStore,
) -> None:
    before = weigh(store)
    ab_first = relation(store, AB)["weight"] > relation(store, AD)["weight"]
    liked, shunned = (1, 2) if ab_first else (2, 1)
    asked = questions(8, 30)
    put_logs(store, preferring(liked, asked[:8]) + preferring(shunned, asked[8:], first_minute=8))
    report = weigh(store)
    assert report.generation == before.generation
    assert not report.learned["kept"]
    assert report.learned["why"].startswith(
        "held-out choices are ordered right 1.000 without it and 0.000 with it"
    )
    assert report.learned["moved"] == {"relations": 0, "mentions": 0}
    assert report.learned["held_out"]["interval"] == [-1.0, -1.0]


def test_without_enough_held_out_questions_nothing_is_used(store: SqliteStore) -> None:
    before = weigh(store)
    put_logs(store, preferring(2, questions(4, 30)))
    report = weigh(store)
    assert report.generation == before.generation
    assert report.learned["why"] == "4 judged questions were held out to test it, 5 are needed"


def test_a_forgotten_log_leaves_no_trace(store: SqliteStore) -> None:
    before = weigh(store)
    was = {name: everything(store, name) for name in WEIGHED}
    logs = preferring(2, questions(5, 20))
    put_logs(store, logs)
    assert weigh(store).generation != before.generation
    store.delete("query_logs", keys=[one.key for one in logs])
    weigh(store)
    assert {name: everything(store, name) for name in WEIGHED} == was


def test_a_question_whose_words_were_forgotten_teaches_nothing(store: SqliteStore) -> None:
    before = weigh(store)
    logs = preferring(2, questions(5, 20))
    put_logs(store, [one.model_copy(update={"query": FORGOTTEN}) for one in logs])
    assert weigh(store).generation == before.generation


def test_a_result_that_is_gone_is_passed_over(store: SqliteStore) -> None:
    asked = questions(5, 20)
    put_logs(
        store,
        [
            log(
                one,
                paths=(AB, (), ("relations/gone", *AD)),
                good=JudgedRanks(paths=(2, 3)),
                minutes=at,
            )
            for at, one in enumerate(asked)
        ],
    )
    report = weigh(store)
    assert relation(store, AD)["learned"] > 0.0
    assert report.learned["pairs"] == 25


def test_learned_offsets_go_back_and_forward_with_the_weights(
    store: SqliteStore, tmp_path: Path
) -> None:
    tracker = registry(tmp_path / "registry")
    asked = questions(6, 40)
    nights = [[], preferring(2, asked[:20]), preferring(2, asked[20:], first_minute=20)]
    was, versions = [], []
    for place, logs in enumerate(nights):
        if logs:
            put_logs(store, logs)
        report = weigh(store, as_of=TODAY + timedelta(weeks=place))
        versions.append(log_weights(store, tracker, as_of=TODAY))
        was.append(({name: everything(store, name) for name in WEIGHED}, report.generation))
    offsets = [
        next(row["learned"] for row in rows["relations"] if row["_key"] == AD[0][10:])
        for rows, _ in was
    ]
    assert offsets[0] is None
    assert 0.0 < offsets[1] < offsets[2]
    for night in (0, 2, 1):
        restore_weights(context_of(store, MODEL), tracker, versions[night])
        done = last_completion(store, WEIGHTS)
        assert done is not None
        assert ({name: everything(store, name) for name in WEIGHED}, done.generation) == was[night]
        assert check_contract(store, "weights").findings == ()
    (newest, *_) = tracker.versions("hades-weights")
    assert newest.tags["generation"] == was[2][1]


def test_a_version_from_before_use_taught_anything_still_restores(
    store: SqliteStore, tmp_path: Path
) -> None:
    weigh(store)
    rows = {
        name: pa.table(
            {
                column: pa.array([row[column] for row in everything(store, name)])
                for column in wanted
            }
        )
        for name, wanted in artifact.COLUMNS.items()
    }
    path = tmp_path / artifact.WEIGHTS_FILE
    artifact.write(path, (rows, [], {}))
    old = pq.read_table(path)
    pq.write_table(old.drop_columns(["learned"]), path)
    assert artifact.read_weights_file(path)[0]["relations"].column("learned").null_count == 7
