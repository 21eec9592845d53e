"""The bridges stage: labels, and hot paths with their sources."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades import stage_ledger
from hades.night.bridges.stage import bridge
from hades.night.context import NotBuilt
from hades.ports.store import GraphStore
from hades.settings.tree import HiragPathrag
from models.bridges import path_weight
from tests.contract.examples import day, entity, put
from tests.patience import examples
from tests.unit.hades.night.bridges.bridge_worlds import (
    NOW,
    PARAMS,
    RULES,
    build,
    cached,
    empty,
    join,
    later,
    place,
    scatter,
    shake,
    walks,
)
from tests.unit.hades.night.contexts import context_of


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    return empty(tmp_path / "graph.db")


def labelled(store: GraphStore) -> set[str]:
    rows = (row for batch in store.scan("relations") for row in batch.to_pylist())
    return {f"{row['_from'][9:]}-{row['_to'][9:]}" for row in rows if row["layer_bridge"]}


def test_a_heavy_edge_between_two_topics_is_a_bridge(store: GraphStore) -> None:
    place(store, x="a b", y="c d")
    put(store, "entities", entity("nobody"))
    join(store, "a b .9", "a c .5", "b c .49", "c b .8 coref", "a nobody .9", "d a .7")
    report = build(store)
    assert labelled(store) == {"a-c", "d-a"}
    assert (report.labelled, report.strong, report.labels_changed) == (2, 0, 2)


def test_a_bridge_between_super_topics_is_strong(store: GraphStore) -> None:
    place(store, x="a", y="b", z="c")
    put(
        store,
        "clusters",
        *({"_key": key, "level": 2, "cluster_params": PARAMS} for key in ("s1", "s2")),
    )
    above = {"x": "s1", "y": "s1", "z": "s2"}
    edges = (
        {"_key": key, "_from": f"clusters/{key}", "_to": f"clusters/{top}"}
        for key, top in above.items()
    )
    put(store, "cluster_edges", *({**edge, "type": "SUBTOPIC_OF"} for edge in edges))
    join(store, "a b .9", "b c .9", "a c .9")
    report = build(store)
    assert (report.labelled, report.strong) == (3, 2)


def test_only_labels_that_changed_are_written(store: GraphStore) -> None:
    place(store, x="a", y="b c d")
    join(store, "a b .9", "a c .9", "a d .9")
    assert build(store).labels_changed == 3
    join(store, "a b .2", "c d .9")  # writing a relation anew clears its label
    put(store, "entities", entity("c", cluster_id="x"))
    assert build(store, "2").labels_changed == 2  # a-c lost its label, c-d got one
    assert labelled(store) == {"a-d", "c-d"}


@pytest.mark.parametrize(
    ("section", "score"), [({"L": 2}, None), ({}, 0.3), ({"lambda": 0.1}, 0.1)]
)
def test_bridges_take_the_length_and_the_penalty_of_the_settings(
    store: GraphStore, section: dict[str, float], score: float | None
) -> None:
    place(store, x="a", y="c", z="m n")
    join(store, "a m .9", "m n .9", "n c .9")
    stage_ledger.record(store, stage_ledger.HIERARCHY, "d", "h1", report={"moving": []})
    path = HiragPathrag.model_validate({"path": {"relation_boost": RULES.boosts, **section}}).path
    bridge(context_of(store, path=path), NOW)
    weights = [row["weight"] for row in cached(store).values() if len(row["edges"]) == 3]
    assert weights == (
        [] if score is None else [pytest.approx(path_weight([math.log(0.9)] * 3, score))]
    )


def test_a_bridge_carries_its_path_score_and_sources(store: GraphStore) -> None:
    place(store, x="a", y="b", z="m")
    read = {"provenance": {"doc": "documents/d", "span": [3, 9]}}
    (first,) = join(store, "a m .8", **read)
    (second,) = join(store, "b m .6")
    build(store)
    (row,) = (row for row in cached(store).values() if len(row["edges"]) == 2)
    assert (row["from_cluster"], row["to_cluster"]) == ("x", "y")
    assert (row["nodes"], row["edges"]) == (
        ["entities/a", "entities/m", "entities/b"],
        [first, second],
    )
    assert row["weight"] == pytest.approx(math.sqrt(0.8 * 0.6) * math.exp(-0.3))
    assert row["cost"] == pytest.approx(-math.log(0.8 * 0.6))
    assert orjson.loads(row["provenance"])["edges"] == [
        {"id": first, "type": "refers_to", "weight": 0.8, "doc": "documents/d", "span": [3, 9]},
        {"id": second, "type": "refers_to", "weight": 0.6, "doc": "", "span": None},
    ]
    assert (row["generation"], row["created"], row["pinned"]) == ("w1", NOW, False)


def test_coref_joins_no_topics_but_leads_about_within_one(store: GraphStore) -> None:
    place(store, x="a", y="b", z="m n")
    join(store, "a m .9", "m n .9 coref", "n b .9", "a b .9 coref")
    build(store)
    assert "a>m>n>b" in walks(store)
    assert "a>b" not in walks(store)


def test_an_edge_with_an_end_in_time_carries_no_bridge(store: GraphStore) -> None:
    place(store, x="a b", y="c d")
    join(store, "a c .9", valid_until=day(9))
    join(store, "b c .9", retracted_at=day(9))
    join(store, "b d .6", valid_from=day(9))
    build(store)
    assert walks(store) == ["b>d"]


def test_equal_inputs_are_skipped_for_thirty_days(store: GraphStore) -> None:
    scatter(store, 1)
    first = build(store)
    again = build(store, as_of=later(29))
    nothing_done = {
        "skipped": True,
        "labels_changed": 0,
        "pairs_searched": 0,
        "removed": 0,
        "work": 0,
    }
    assert vars(again) == vars(first) | nothing_done
    renewed = build(store, as_of=later(30))
    assert not renewed.skipped
    assert renewed.generation == first.generation
    assert {row["created"] for row in cached(store).values()} == {later(30)}


def test_a_store_without_topics_has_no_bridges(store: GraphStore) -> None:
    assert build(store).bridges == 0
    put(store, "entities", entity("a"), entity("b"))
    join(store, "a b .9")
    report = build(store, "3")
    assert (report.labelled, report.pairs, report.bridges) == (0, 0, 0)


def test_without_weights_there_are_no_bridges(store: GraphStore) -> None:
    stage_ledger.record(store, stage_ledger.HIERARCHY, "d", "h1", report={"moving": []})
    stage_ledger.forget(store, stage_ledger.WEIGHTS)
    with pytest.raises(NotBuilt, match="the stage weights has not completed"):
        bridge(context_of(store), NOW)


def comparable(store: GraphStore) -> dict[tuple[str, str], list[Any]]:
    pairs: dict[tuple[str, str], list[Any]] = {}
    for _, row in sorted(cached(store).items()):
        pairs.setdefault((row["from_cluster"], row["to_cluster"]), []).append(row)
    return pairs


@settings(max_examples=examples(4), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_a_build_after_changes_equals_a_build_from_nothing(seed: int, changes: int) -> None:
    with TemporaryDirectory() as folder:
        grown, fresh = empty(Path(folder) / "a.db"), empty(Path(folder) / "b.db")
        for one in (grown, fresh):
            scatter(one, seed)
        build(grown)
        for one in (grown, fresh):
            shake(one, seed + 1, changes)
        again, first = build(grown, "2", as_of=later(1)), build(fresh, "2", as_of=later(1))
        assert comparable(grown) == comparable(fresh)
        assert (again.generation, again.pairs_searched) == (first.generation, first.pairs_searched)
        grown.close()
        fresh.close()


def test_topics_that_moved_are_served_first_even_when_they_are_not_hot(store: GraphStore) -> None:
    place(store, x="a", y="b", z="c", cold="d")
    join(store, "a b .9", "b c .9", "a c .9", "d a .5")
    rules = replace(RULES, near_pairs=1, far_pairs=0)
    answers = iter([False, True])
    report = build(store, rules=rules, moved=["cold"], deadline=lambda: next(answers))
    assert walks(store) == ["d>a"]
    assert (report.pairs, report.pairs_searched, report.stopped) == (4, 1, "time")


def test_pairs_that_questions_met_together_get_bridges(store: GraphStore) -> None:
    place(store, x="a", y="b", z="c")
    join(store, "a b .9", "b c .9")
    rules = replace(RULES, near_pairs=0, far_pairs=0, topic_pairs=0)
    met = {"hierarchy": [{"id": "clusters/x", "level": 1}, {"id": "clusters/z", "level": 1}]}
    log = {"query": "q", "recipe": "hirag", "snapshot": "g", "results": orjson.dumps(met).decode()}
    put(store, "query_logs", {"_key": "old", "at": later(-40), **log})
    assert build(store, rules=rules).bridges == 0
    put(store, "query_logs", {"_key": "new", "at": later(-1), **log})
    build(store, "2", rules=rules)
    assert walks(store) == ["a>b>c"]


def test_out_of_time_it_keeps_what_it_has_and_the_next_build_goes_on(store: GraphStore) -> None:
    scatter(store, 3)
    answers = iter([False, False, True])
    part = build(store, deadline=lambda: next(answers))
    assert (part.pairs_searched, part.pairs_left, part.stopped) == (2, part.pairs - 2, "time")
    rest = build(store)
    assert not rest.skipped
    assert (rest.pairs_searched, rest.pairs_left, rest.stopped) == (rest.pairs, 0, "")


def test_out_of_time_old_paths_that_stand_are_kept(store: GraphStore) -> None:
    place(store, x="a b", y="c")
    join(store, "a c .9", "b c .8")
    build(store)
    join(store, "a c .7")
    report = build(store, "2", deadline=lambda: True)
    assert (walks(store), report.pairs_left) == (["a>c", "b>c"], 1)
    assert max(row["weight"] for row in cached(store).values()) == pytest.approx(0.8)


def test_nothing_is_written_when_the_stage_fails_in_the_middle(store: GraphStore) -> None:
    place(store, x="a", y="c")
    join(store, "a c .9")

    def fail(stage: str, done: int, total: int | None) -> None:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        build(store, progress=fail)
    assert (
        labelled(store),
        cached(store),
        stage_ledger.last_completion(store, stage_ledger.BRIDGES),
    ) == (
        set(),
        {},
        None,
    )


def test_the_work_of_a_build_is_bounded(store: GraphStore) -> None:
    scatter(store, 3)
    report = build(store, rules=replace(RULES, work=1))
    assert (report.pairs_searched, report.stopped) == (1, "work")
    assert build(store, rules=replace(RULES, work=1)).skipped
    short = build(store, "2", rules=replace(RULES, pair_work=7))
    assert set(short.by_length) == {"1"}


def test_a_pinned_bridge_stays_while_its_edges_do(store: GraphStore) -> None:
    place(store, x="a b c", y="d")
    join(store, "a d .9", "b d .8", "c d .7")
    rules = replace(RULES, paths_per_pair=1)
    build(store, rules=rules)
    (key,) = cached(store)
    store.patch("bridge_cache", pa.table({"_key": [key], "pinned": [True]}))
    join(store, "a d .6")
    report = build(store, "2", rules=rules)
    assert (walks(store), report.pinned, report.notes) == (["a>d", "b>d"], 1, [])
    assert cached(store)[key]["weight"] == pytest.approx(0.6)
    store.delete("relations", keys=[cached(store)[key]["edges"][0].removeprefix("relations/")])
    report = build(store, "3", rules=rules)
    assert walks(store) == ["b>d"]
    assert report.notes == [
        f"bridge_cache/{key} was pinned and is dropped: {report.notes[0].partition(': ')[2]}"
    ]
    assert "no longer stands" in report.notes[0]
