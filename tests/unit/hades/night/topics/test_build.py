"""The stage over small stores with planted topics."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from hades.night.topics.cluster import BUCKET
from hades.ports.services import Completion
from schemas.edges import ClusterEdgeType
from schemas.ids import edge_key
from tests.contract.examples import entity, everything, put, relation
from tests.homes import empty_store
from tests.unit.hades.night.topics.worlds import (
    MODEL,
    add_papers,
    build,
    paper_vector,
    planted_store,
    rows_of,
    topic_of,
)


def test_planted_topics_are_found_and_names_follow_their_papers(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db")
    report = build(store, "one")
    assert (report.mode, report.topics, report.supertopics, report.entities) == ("full", 3, 1, 42)
    found = topic_of(store)
    for topic in range(3):
        members = {key: where for key, where in found.items() if key[1:].startswith(str(topic))}
        assert len(members) == 14
        assert len(set(members.values())) == 1


def test_topics_of_a_folder_follow_its_folders_and_are_named_by_them_and_by_titles(
    tmp_path: Path,
) -> None:
    store = planted_store(tmp_path / "graph.db")
    pages = [
        {
            **row,
            "source": "documents",
            "title": row["text"].partition("\n")[0],
            "origin": f"book{row['origin'][1]}/{row['origin']}.md",
        }
        for row in everything(store, "documents")
    ]
    put(store, "documents", *pages)
    report = build(store, "one")
    assert report.topics >= 3
    names = {row["_key"]: row["name"] for row in everything(store, "clusters") if row["level"] == 1}
    for key, topic in topic_of(store).items():
        if key.startswith("p"):
            assert re.fullmatch(
                rf"book{key[1]}: Paper \d+ on \w+; Paper \d+ on \w+", names[topic or ""]
            )


def test_every_entity_has_one_topic_and_edges_point_up(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db", topics=6)
    build(store, "one")
    edges = everything(store, "cluster_edges")
    member = Counter(edge["_from"] for edge in edges if edge["type"] == ClusterEdgeType.PART_OF)
    assert member == {f"entities/{key}": 1 for key in topic_of(store)}
    clusters = {row["_key"]: row for row in everything(store, "clusters")}
    above = {
        edge["_from"]: edge["_to"] for edge in edges if edge["type"] == ClusterEdgeType.SUBTOPIC_OF
    }
    topics = {key: row for key, row in clusters.items() if row["level"] == 1}
    assert above == {f"clusters/{key}": f"clusters/{row['parent']}" for key, row in topics.items()}
    assert max(Counter(above.values()).values()) <= 4  # max_fanout
    assert all(0.0 <= edge["weight"] <= 1.0 for edge in edges)
    assert sum(row["size"] for row in topics.values()) == len(member)
    assert all(row["layer"] == 0 for row in everything(store, "entities"))


def test_summaries_quote_the_documents_at_their_spans(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db")
    build(store, "one")
    texts = {f"documents/{row['_key']}": row["text"] for row in everything(store, "documents")}
    for cluster in everything(store, "clusters"):
        quotes = json.loads(cluster["metadata"])["evidence"]
        assert len(quotes) == 3
        quoted = " ".join(texts[one["doc"]][slice(*one["span"])] for one in quotes)
        assert "**measure**" in quoted
        assert cluster["summary"] == quoted.replace("**", "")
    names = {row["name"] for row in everything(store, "clusters") if row["level"] == 1}
    assert sorted(
        word for name in names for word in ("galaxies", "grammars", "proteins") if word in name
    ) == [*("galaxies", "grammars", "proteins")]


def test_summaries_quote_the_same_whatever_weights_the_night_before_gave(tmp_path: Path) -> None:
    summaries = []
    for weight in (None, 0.01):
        store = planted_store(tmp_path / f"{weight}.db", topics=1)
        papers = [f"p0_{number:02d}" for number in range(12)]
        for chunk in papers:
            mentions = [mention_of(f"doc_chunks/k_{chunk}", f"entities/{one}") for one in papers]
            heavier = None if weight is None else weight * (1 + papers.index(chunk))
            put(store, "mentions", *({**mention, "weight": heavier} for mention in mentions))
        build(store, "one")
        summaries.append([row["summary"] for row in everything(store, "clusters")])
    assert summaries[0] == summaries[1]


def mention_of(tail: str, head: str) -> dict[str, str]:
    """A chunk names an entity."""
    key = edge_key(tail, "mentions", head)
    return {"_key": key, "_from": tail, "_to": head, "type": "mentions"}


def test_new_papers_join_their_topics_which_keep_their_keys(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db")
    build(store, "one")
    before = topic_of(store)
    added = add_papers(store, [(2, number) for number in range(40, 48)])
    report = build(store, "two", on=2)
    assert (report.placed, report.moved) == (8, 0)
    assert topic_of(store) == {**before, **dict.fromkeys(added, before["p2_00"])}
    assert (report.topics_kept, report.topics_new, report.topics_gone) == (3, 0, 0)
    assert [moving["cluster"] for moving in report.moving] == [before["p2_00"]]
    drift = {
        row["_key"]: row["drift"] for row in everything(store, "clusters") if row["level"] == 1
    }
    assert [key for key, moved in drift.items() if moved > 0] == [before["p2_00"]]
    assert report.drift > 0


def test_an_entity_that_changed_its_subject_moves_and_is_journalled(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db", papers=20)
    build(store, "one")
    before = topic_of(store)
    row = {"_key": "p0_03", "embedding": paper_vector(2, 77), "embedding_model": MODEL}
    store.delete("relations", keys=[relation("p0_03", f"{kind}0")["_key"] for kind in "ca"])
    put(store, "relations", relation("p0_03", "c2"), relation("p0_03", "a2"))
    moved = {**store.get("entities", ["p0_03"]).to_pylist()[0], **row}
    put(store, "entities", moved)
    report = build(store, "two", on=2)
    assert (report.mode, report.moved) == ("full", 1)
    [now] = store.get("entities", ["p0_03"]).to_pylist()
    assert (now["cluster_id"], now["prev_cluster_id"]) == (before["p2_00"], before["p0_03"])
    [entry] = [
        row
        for row in everything(store, "cluster_membership_journal")
        if row["build"] == report.build
    ]
    assert (entry["entity"], entry["cluster_id"], entry["prev_cluster_id"]) == (
        "p0_03",
        before["p2_00"],
        before["p0_03"],
    )
    assert entry["reason"] == "moved by a full build"


def test_without_a_vector_neighbours_decide_and_without_both_the_bucket_takes_it(
    tmp_path: Path,
) -> None:
    store = planted_store(tmp_path / "graph.db")
    put(store, "entities", entity("mute"), entity("far"), entity("lost"))
    put(store, "relations", relation("p1_00", "mute"), relation("mute", "far"))
    report = build(store, "one")
    found = topic_of(store)
    assert found["mute"] == found["far"] == found["p1_00"]  # one hop and two
    assert (found["lost"], report.unplaced) == (BUCKET, 1)
    [bucket] = store.get("clusters", [BUCKET]).to_pylist()
    assert (bucket["name"], bucket["centroid"], bucket["size"]) == ("unplaced", None, 1)


@pytest.mark.parametrize("entities", [0, 1, 3])
def test_tiny_stores_have_a_hierarchy_too(tmp_path: Path, entities: int) -> None:
    store = empty_store(tmp_path / "graph.db")
    for number in range(entities):
        vector = {"embedding": paper_vector(number, 0), "embedding_model": MODEL}
        put(store, "entities", entity(f"e{number}", **vector))
    report = build(store, "one")
    assert (report.topics, report.supertopics) == ((1, 1) if entities else (0, 0))
    assert all(topic_of(store).values())


class Parrot:
    """A language model that says how often it was asked."""

    model = "parrot-1"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def allows(self, calls: int, tokens: int) -> bool:
        return True

    def complete(self, prompt: str, *, max_tokens: int) -> Completion:
        self.prompts.append(prompt)
        return Completion(f" Answer {len(self.prompts)}. ", 10, 3)


def test_a_language_model_writes_from_the_quotes_and_is_asked_once(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db", papers=20)
    parrot = Parrot()
    report = build(store, "one", language_model=parrot)
    assert report.summaries_written == len(parrot.prompts) == 4
    clusters = {row["_key"]: row for row in everything(store, "clusters")}
    assert {row["summary"] for row in clusters.values()} == {
        f"Answer {number}." for number in range(1, 5)
    }
    assert all(json.loads(row["metadata"])["written_by"] == "parrot-1" for row in clusters.values())
    again = build(store, "two", on=2, mode="full", language_model=parrot)
    assert (again.mode, again.summaries_written) == ("full", 0)
    assert {row["_key"]: row for row in everything(store, "clusters")} == clusters


def test_summaries_above_the_cap_of_a_language_model_quote(tmp_path: Path) -> None:
    class Capped(Parrot):
        def allows(self, calls: int, tokens: int) -> bool:
            assert tokens > calls
            return calls < 4

    store, parrot = planted_store(tmp_path / "graph.db", papers=20), Capped()
    report = build(store, "one", language_model=parrot)
    assert (report.summaries_written, report.summaries_left_out, parrot.prompts) == (0, 4, [])
    assert report.why.endswith("too many calls for HADES_LLM_MAX_CALLS")
    assert not any(
        json.loads(row["metadata"])["written_by"] for row in everything(store, "clusters")
    )
    assert build(store, "one", on=2, language_model=parrot).mode == "skipped"


def test_a_build_that_fails_leaves_the_last_one(tmp_path: Path) -> None:
    store = planted_store(tmp_path / "graph.db")
    build(store, "one")
    before = rows_of(store)

    class Broken(Parrot):
        def complete(self, prompt: str, *, max_tokens: int) -> Completion:
            raise ConnectionError("no answer")

    with pytest.raises(ConnectionError):
        build(store, "two", on=2, language_model=Broken())
    assert rows_of(store) == before
