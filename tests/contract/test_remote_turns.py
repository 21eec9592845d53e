"""Questions over AQL: every recipe answers as over a snapshot, in a bounded number of questions to the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hades.ingest.phases import IngestContext, ingest
from hades.ports.graph import Kind
from hades.ports.store import GraphStore
from hades.ports.view import GraphView
from hades.providers.hashing import HashingEmbedder
from hades.retrieval.core.metered_view import KEPT_TRIPS, ROUND_TRIPS, MeteredView
from hades.retrieval.core.types import NAMES_OF_RECIPES
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.stores.arango import provision
from hades.stores.arango import view as view_module
from hades.stores.arango.client import ArangoSession
from hades.stores.arango.turn_view import ArangoView
from hades.telemetry.turn import Caps, Turn
from schemas.answer import Retrieval
from schemas.catalogue import ANALYZER, COLLECTIONS, NAMES
from schemas.plan import Reason
from tests.arango_double.server import ArangoDouble
from tests.contract.conftest import REAL_SERVER
from tests.contract.view_fixtures import arango_store, sqlite_store
from tests.unit.hades.ingest.corpora import TOKENIZER, Listed, passage

PASSAGES = [
    ("Aachen", "Aachen is a town in the west. Charlemagne lived in Aachen and built the Palatine Chapel there."),
    ("Charlemagne", "Charlemagne was crowned by Pope Leo III. His palace school was led by Alcuin of York."),
    ("Alcuin of York", "Alcuin of York was a scholar from Northumbria. Alcuin of York taught at York Minster."),
    ("York Minster", "York Minster is a cathedral in York. Its East Window was made by John Thornton."),
    ("John Thornton", "John Thornton was a glazier from Coventry who worked in the fifteenth century."),
    ("Coventry", "Coventry is a city in England. Lady Godiva is remembered in Coventry every year."),
    ("Bremen", "Bremen is a port on the Weser. The Town Musicians of Bremen stand beside the town hall."),
    ("Weser", "The Weser flows through Bremen and Minden to the North Sea."),
    ("Minden", "Minden lies on the Weser. The Battle of Minden was fought near Minden in 1759."),
    ("Celle", "Celle is known for its timber houses. Caroline Matilda died in Celle Castle."),
    ("Caroline Matilda", "Caroline Matilda was Queen of Denmark. Her physician was Johann Friedrich Struensee."),
    ("Johann Friedrich Struensee", "Johann Friedrich Struensee was born in Halle and ruled Denmark for a year."),
]
QUESTIONS = (
    "Who led the palace school of Charlemagne?",
    "Where did the glazier of the East Window of York Minster come from?",
    "Which river flows through Bremen and Minden?",
    "Where was the physician of Caroline Matilda born?",
)
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Views:
    snapshot: GraphView
    live: ArangoView


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory, double: ArangoDouble) -> Views:
    """One graph as a snapshot and on a server."""
    home: Path = tmp_path_factory.mktemp("turns")
    embedded, server = sqlite_store(home / "graph.db"), arango_store(double)
    source = Listed([passage(f"p{place}", title, text) for place, (title, text) in enumerate(PASSAGES)])
    ingest(IngestContext(embedded, HashingEmbedder(), TOKENIZER, home / "cache"), source)
    copy_rows(embedded, server)
    publish(embedded, home)
    live = ArangoView(server)
    assert live.info.nodes["doc_chunks"] == len(PASSAGES)  # counted once, not in a turn
    return Views(open_snapshot(home), live)


def copy_rows(source: GraphStore, target: GraphStore) -> None:
    with target.bulk(NAMES) as inside:
        for collection in sorted(COLLECTIONS, key=lambda one: one.edge is not None):
            for batch in source.scan(collection.name):
                inside.upsert(collection.name, pa.Table.from_batches([batch]))


def ask(view: GraphView, question: str, recipe: str = "auto") -> Retrieval:
    tools = Tools(TOKENIZER, HashingEmbedder(), clock=lambda: 0.0)
    return retrieve(view, question, tools, at=AT, recipe=recipe)


@contextmanager
def count_requests() -> Iterator[Callable[[], int]]:
    """How many queries reached the server meanwhile."""
    asked = 0
    run = ArangoSession.execute

    def noted(self: ArangoSession, *arguments: object, **options: object) -> object:
        nonlocal asked
        asked += 1
        return run(self, *arguments, **options)  # type: ignore[arg-type]

    ArangoSession.execute = noted  # type: ignore[method-assign,assignment]
    try:
        yield lambda: asked
    finally:
        ArangoSession.execute = run  # type: ignore[method-assign]


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_every_recipe_answers_in_at_most_twelve_questions(views: Views, recipe: str) -> None:
    with count_requests() as asked:
        found = ask(views.live, QUESTIONS[1], recipe)
    assert found.passages
    assert asked() == found.telemetry.counters["round_trips"] <= ROUND_TRIPS


@pytest.mark.parametrize("question", QUESTIONS[:2])
def test_the_default_recipe_explains_its_passages_by_paths(views: Views, question: str) -> None:
    found = ask(views.live, question)
    assert found.paths
    assert found.telemetry.reads <= found.plan.budget.docs_max


def test_the_default_recipe_ranks_as_over_a_snapshot(views: Views) -> None:
    for question in QUESTIONS:
        here, there = ask(views.live, question), ask(views.snapshot, question)
        first = {one.id for one in there.passages[:5]}
        assert len(first & {one.id for one in here.passages[:5]}) >= len(first) - 1, question


def test_what_a_turn_has_fetched_is_not_fetched_again(views: Views) -> None:
    turn = Turn(Caps(100, 100_000, 1000))
    view = MeteredView(views.live, turn)
    named = view.match_names(QUESTIONS[0]).numbers
    view.lexical(QUESTIONS[0], kind=Kind.CHUNK, limit=5)
    view.lexical(QUESTIONS[0], kind=Kind.ENTITY, limit=5)
    assert (len(named) > 0, turn.round_trips) == (True, 1)
    first = view.expand(named, direction="any", fanout=3)  # type: ignore[arg-type]
    again = view.expand(named, direction="outbound", types=["related_to"])  # type: ignore[arg-type]
    assert (len(first) > 0, set(again.type.tolist()) <= {view.type_names.index("related_to")}) == (True, True)
    assert turn.round_trips == 2


def test_a_refused_question_finds_nothing_and_what_is_handed_over_keeps_its_share(views: Views) -> None:
    turn = Turn(Caps(100, 100_000, 1000))
    view = MeteredView(views.live, turn)
    model = HashingEmbedder().model.tag
    vector = next(iter(HashingEmbedder().embed([QUESTIONS[0]])))
    chunks = view.nearest(vector, kind=Kind.CHUNK, model=model, limit=3).numbers
    for number in range(20):
        view.lexical(f"Weser {number}", kind=Kind.CHUNK, limit=1)
    assert turn.round_trips == ROUND_TRIPS - KEPT_TRIPS
    assert len(view.lexical("Bremen", kind=Kind.CHUNK, limit=1)) == 0
    assert len(view.passages(chunks)) == len(chunks)
    assert np.array_equal(view.vectors(chunks, model=model)[1], np.ones(len(chunks), np.bool_))
    assert turn.round_trips == ROUND_TRIPS - KEPT_TRIPS + 1


def test_an_answer_read_while_a_large_write_is_applied_says_so(views: Views) -> None:
    journal = views.live.store.session.db.collection("write_journal")
    journal.insert({"_key": "halfway", "pieces": 2, "cost": 1, "collections": ["entities"]})
    try:
        assert Reason.VIEW_DEGRADED in ask(views.live, QUESTIONS[0]).reasons
    finally:
        journal.delete("halfway")
    assert Reason.VIEW_DEGRADED not in ask(views.live, QUESTIONS[0]).reasons


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_a_turn_that_meets_a_half_applied_write_answers_from_the_snapshot_alone(views: Views, recipe: str) -> None:
    """Rows of the new state lie in the store already; nothing of them may be shown."""
    server = views.live.store
    live = ArangoView(server, lambda: views.snapshot)
    row = {"_key": "half", "name": "Charlemagne", "name_lower": "charlemagne", "type": "concept", "summary": "NEW"}
    server.session.db.collection("entities").insert(row)
    journal = server.session.db.collection("write_journal")
    journal.insert({"_key": "halfway", "pieces": 2, "cost": 1, "collections": ["entities"]})
    try:
        found = ask(live, QUESTIONS[0], recipe)
    finally:
        journal.delete("halfway")
        server.session.db.collection("entities").delete("half")
    published = ask(views.snapshot, QUESTIONS[0], recipe)
    assert (found.passages, found.paths) == (published.passages, published.paths)
    assert found.snapshot == views.snapshot.info.snapshot


@pytest.mark.skipif(bool(REAL_SERVER), reason="the fault is injected into the double")
def test_a_search_by_vector_that_took_too_long_is_left_out_for_a_while(
    views: Views, double: ArangoDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = HashingEmbedder().model.tag
    vector = next(iter(HashingEmbedder().embed([QUESTIONS[0]])))

    def nearest(view: ArangoView) -> int:
        return len(view.nearest(vector, kind=Kind.CHUNK, model=model, limit=3))

    for pause, asked_again in ((60.0, 0), (0.0, 3)):
        monkeypatch.setattr(view_module, "_SLOW_S", pause)
        live = ArangoView(views.live.store)
        double.faults.error(1500, matching="Rows by cosine to the vector, highest first")
        assert nearest(live) == 0
        assert nearest(live) == asked_again
        double.faults.clear()


def test_a_turn_says_that_the_server_cuts_texts_otherwise_than_declared(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Reason.ANALYZER_MISMATCH not in ask(views.live, QUESTIONS[0]).reasons
    declared = provision.Analyzer("text", {"locale": "en", "stemming": False}, ("frequency", "norm", "position"))
    monkeypatch.setitem(provision.ANALYZERS, ANALYZER, declared)
    assert Reason.ANALYZER_MISMATCH in ask(ArangoView(views.live.store), QUESTIONS[0]).reasons
