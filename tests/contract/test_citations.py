"""Citations are verified through either view, and a document somebody altered vouches for
nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.ports.store import Direction, GraphStore
from hades.retrieval.answer.assemble import Citation, Verdict, verify_spans
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from schemas.ids import sha256_text
from tests.arango_double.server import ArangoDouble
from tests.contract.examples import put
from tests.contract.view_fixtures import RIVERS, arango_store, document, everything, fill
from tests.homes import empty_store


def altered(store: GraphStore) -> None:
    """Lengthen a document that everything cites by a few words and leave its hash as it was."""
    row = document("rivers", "corpus-17", "Rivers", RIVERS + " It is salty.")
    put(store, "documents", {**row, "sha256": sha256_text(RIVERS)})


def opened(kind: str, home: Path, double: ArangoDouble, *, alter: bool) -> GraphView:
    if kind == "snapshot":
        embedded = empty_store(home / "graph.db")
        fill(embedded)
        if alter:
            altered(embedded)
        publish(embedded, home)
        return open_snapshot(home)
    server = arango_store(double)
    fill(server)
    if alter:
        altered(server)
    return everything(server)


def verdicts(view: GraphView) -> list[Verdict]:
    """Of two chunks of the rivers, a function, a file, and the two heaviest edges a river has: one
    without a source.
    """
    passages = view.passages(
        view.number(["doc_chunks/c1", "doc_chunks/c2", "funcs/g1", "files/f1"])
    )
    edges = view.edges(
        view.expand(
            view.number(["entities/hub"]),
            direction=Direction.OUT,
            types=["refers_to", "derives_from"],
        ).edge
    )
    assert [edge.id for edge in edges[:2]] == ["relations/r2", "relations/r1"]
    cited = [Citation(one.document_id, one.span, one.text) for one in passages]
    cited += [Citation(one.document_id, one.span, one.snippet) for one in edges[:2]]
    return verify_spans(view, cited)


@pytest.mark.parametrize("kind", ["snapshot", "arango"])
def test_what_cites_an_altered_document_is_a_mismatch_and_the_rest_stays_verified(
    kind: str, tmp_path: Path, double: ArangoDouble
) -> None:
    good, none, wrong = Verdict.VERIFIED, Verdict.UNVERIFIED, Verdict.MISMATCH
    (tmp_path / "as-stored").mkdir()
    assert verdicts(opened(kind, tmp_path / "as-stored", double, alter=False)) == [
        good,
        good,
        good,
        good,
        none,
        good,
    ]
    (tmp_path / "altered").mkdir()
    assert verdicts(opened(kind, tmp_path / "altered", double, alter=True)) == [
        wrong,
        wrong,
        good,
        good,
        none,
        wrong,
    ]
