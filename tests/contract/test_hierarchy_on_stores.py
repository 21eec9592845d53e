"""The same material gives the same topics in every store."""

from __future__ import annotations

from pathlib import Path

from hades.ports.store import GraphStore
from tests.contract.examples import everything, put
from tests.homes import empty_store
from tests.unit.hades.night.topics.worlds import add_papers, build, named, remove_paper


def test_topics_are_the_same_everywhere(store: GraphStore, tmp_path: Path) -> None:
    embedded = empty_store(tmp_path / "embedded.db")
    for one in (store, embedded):
        put(one, "entities", *(row for topic in range(3) for row in named(topic)))
        add_papers(one, [(topic, number) for topic in range(3) for number in range(20)])
        assert build(one, "one").mode == "full"
        add_papers(one, [(1, 50)])
        remove_paper(one, 2, 3)
        assert build(one, "two", on=2).moved == 0
    for collection in (
        "clusters",
        "cluster_edges",
        "cluster_membership_journal",
        "build_stages",
        "entities",
    ):
        assert everything(store, collection) == everything(embedded, collection)
