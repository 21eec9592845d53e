"""A snapshot searches a small collection exactly and a large one approximately, and an answer says
which.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hades.budget import Caps, Turn
from hades.ports.graph import Kind
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.turn_result import telemetry_of
from hades.snapshot import vectors
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from models.arrays import unit_rows
from tests.contract.examples import entity, put
from tests.homes import empty_store

MODEL, COUNT = "toy@1/8", 400
VECTORS = unit_rows(np.random.default_rng(5).standard_normal((COUNT, 8)))
ASKED = VECTORS[:20] + np.float32(0.05)


def published(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, approximate_from: int = COUNT + 1
) -> GraphView:
    monkeypatch.setattr(vectors, "APPROXIMATE_FROM", approximate_from)
    home.mkdir()
    store = empty_store(home / "graph.db")
    rows = [
        entity(f"e{n:03}", embedding=row.tolist(), embedding_model=MODEL)
        for n, row in enumerate(VECTORS)
    ]
    put(store, "entities", *rows)
    publish(store, home)
    store.close()
    return open_snapshot(home)


def hits(
    view: GraphView, limit: int = 10, **narrowing: object
) -> list[tuple[list[int], list[float]]]:
    found = [
        view.nearest(one, kind=Kind.ENTITY, model=MODEL, limit=limit, **narrowing) for one in ASKED
    ]
    return [(one.numbers.tolist(), one.scores.tolist()) for one in found]


def test_below_the_size_a_search_is_exact(tmp_path, monkeypatch):
    found = published(tmp_path / "plain", monkeypatch)
    cosines = VECTORS @ unit_rows(ASKED).T
    assert [numbers for numbers, _ in hits(found)] == np.argsort(-cosines.T, kind="stable")[
        :, :10
    ].tolist()
    assert not found.nearest(ASKED[0], kind=Kind.ENTITY, model=MODEL, limit=3).is_approximate


def test_from_the_size_on_a_search_is_approximate_and_the_telemetry_says_so(tmp_path, monkeypatch):
    exact = published(tmp_path / "plain", monkeypatch)
    large = published(tmp_path / "large", monkeypatch, approximate_from=COUNT)
    turn = Turn(Caps(10, 10, 1000))
    found = MeteredView(large, turn).nearest(ASKED[0], kind=Kind.ENTITY, model=MODEL, limit=10)
    assert found.is_approximate
    assert telemetry_of(turn, {}).counters == {"approximate_searches": 1}
    held = sum(
        len(set(a) & set(b)) for (a, _), (b, _) in zip(hits(exact), hits(large), strict=True)
    )
    assert held / (10 * len(ASKED)) >= 0.98


def test_a_search_among_given_nodes_is_exact_at_any_size(tmp_path, monkeypatch):
    exact = published(tmp_path / "plain", monkeypatch)
    large = published(tmp_path / "large", monkeypatch, approximate_from=COUNT)
    for within in (np.arange(0, COUNT, 3), np.array([5, 7, 399])):
        assert hits(exact, within=within) == hits(large, within=within)
    assert not large.nearest(
        ASKED[0], kind=Kind.ENTITY, model=MODEL, limit=3, within=np.arange(9)
    ).is_approximate


def test_the_same_rows_give_the_same_snapshot(tmp_path, monkeypatch):
    first = published(tmp_path / "one", monkeypatch, approximate_from=COUNT)
    second = published(tmp_path / "two", monkeypatch, approximate_from=COUNT)
    assert first.info.snapshot == second.info.snapshot
