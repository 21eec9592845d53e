"""An edit of an entity goes through a whole night: contracts stay green, questions see it, undo
takes it back.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hades.api import Hades
from hades.curation import ReviewRules, undo, update_entity
from hades.retrieval.walks.neighbourhood import node_shown
from tests.unit.hades.night.release.small_graphs import MONDAY, ingested

OPEN = ReviewRules(degree=10_000)


def served(hades: Hades, key: str) -> tuple[str, str]:
    shown = node_shown(hades.answers.view, f"entities/{key}")
    return shown["name"], shown["type"]


@pytest.mark.slow
def test_an_edit_survives_the_night_and_its_undo_the_next(tmp_path: Path) -> None:
    with ingested(tmp_path) as hades:
        hades.build(as_of=MONDAY)
        key = next(
            row["_key"]
            for batch in hades.store.scan("entities", columns=["_key", "name"])
            for row in batch.to_pylist()
            if row["name"] == "Ada Lovelace"
        )
        before = served(hades, key)
        edit = update_entity(
            hades.store,
            key,
            {"name": "Ada King", "type": "method"},
            who="kim",
            why="",
            at=MONDAY,
            embedder=hades.embedder,
            rules=OPEN,
        )
        assert served(hades, key) == before
        hades.build(as_of=MONDAY + timedelta(days=1))
        assert served(hades, key) == ("Ada King", "method")
        found = hades.retrieve("Where did Ada King work?")
        assert any(node.name == "Ada King" for path in found.paths for node in path.nodes)
        undo(hades.store, edit.edit, who="kim", why="", at=MONDAY, embedder=hades.embedder)
        hades.build(as_of=MONDAY + timedelta(days=2))
        assert served(hades, key) == before
