"""Questions over AQL: every recipe answers as over a snapshot, in few questions to the server."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from hades import budget
from hades import budget as turn_clock
from hades.errors import QueryTimeout
from hades.ingest.phases import IngestContext, ingest
from hades.ports.graph import Kind
from hades.ports.store import GraphStore, scan_rows
from hades.providers.hashing import HashingEmbedder
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import NAMES_OF_RECIPES
from hades.retrieval.pipeline import Tools, retrieve
from hades.snapshot.files import hash_texts
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.remote import Neighbourhood, OpenView
from hades.snapshot.view import GraphView
from hades.stores.arango import neighbourhood, provision
from hades.stores.arango.client import ArangoSession
from hades.stores.arango.neighbourhood import ArangoView
from hades.text.words import terms, words
from schemas.answer import Retrieval
from schemas.catalogue import ANALYZER, COLLECTIONS, NAMES
from schemas.ids import Mask
from schemas.plan import Plan, Reason
from tests.arango_double.server import ArangoDouble
from tests.contract.conftest import REAL_SERVER
from tests.contract.view_fixtures import arango_store
from tests.homes import empty_store
from tests.patience import examples
from tests.unit.hades.ingest.corpora import TOKENIZER, Listed, passage

PASSAGES = [
    (
        "Aachen",
        "Aachen is a town in the west. Charlemagne lived in Aachen and built the Palatine Chapel "
        "there.",
    ),
    (
        "Charlemagne",
        "Charlemagne was crowned by Pope Leo III. His palace school was led by Alcuin of York.",
    ),
    (
        "Alcuin of York",
        "Alcuin of York was a scholar from Northumbria. Alcuin of York taught at York Minster.",
    ),
    (
        "York Minster",
        "York Minster is a cathedral in York. Its East Window was made by John Thornton.",
    ),
    (
        "John Thornton",
        "John Thornton was a glazier from Coventry who worked in the fifteenth century.",
    ),
    (
        "Coventry",
        "Coventry is a city in England. Lady Godiva is remembered in Coventry every year.",
    ),
    (
        "Bremen",
        "Bremen is a port on the Weser. The Town Musicians of Bremen stand beside the town hall.",
    ),
    ("Weser", "The Weser flows through Bremen and Minden to the North Sea."),
    ("Minden", "Minden lies on the Weser. The Battle of Minden was fought near Minden in 1759."),
    (
        "Celle",
        "Celle is known for timber, i.e. the town's 3,426 beams. Caroline Matilda died in Celle "
        "Castle.",
    ),
    (
        "Caroline Matilda",
        "Caroline Matilda was Queen of Denmark. Her physician was Johann Friedrich Struensee.",
    ),
    (
        "Johann Friedrich Struensee",
        "Johann Friedrich Struensee was born in Halle and ruled Denmark for a year.",
    ),
]
QUESTIONS = (
    "Who led the palace school of Charlemagne?",
    "Where did the glazier of the East Window of York Minster come from?",
    "Which river flows through Bremen and Minden?",
    "Where was the physician of Caroline Matilda born?",
    "Where did Charlemagne build a chapel?",
    "Who crowned Charlemagne?",
    "Where did Alcuin of York teach?",
    "Who made the East Window?",
    "Which city remembers Lady Godiva?",
    "Where do the Town Musicians stand?",
    "When was the Battle of Minden fought?",
    "Who died in Celle Castle?",
    "Who was Queen of Denmark?",
    "Which sea does the Weser reach?",
    "Who ruled Denmark for a year?",
    "Where did the scholar of the palace school come from?",
    "What is Celle known for?",
    "Which cathedral has a window by a glazier from Coventry?",
    "Who lived in Aachen?",
    "Which town lies on the river that flows through Bremen?",
)
AT = datetime(2026, 1, 1, tzinfo=UTC)
_STDLIB = Path(sysconfig.get_path("stdlib"))


@dataclass(frozen=True)
class Views:
    snapshot: GraphView
    live: ArangoView


@pytest.fixture(scope="module")
def shared_views(tmp_path_factory: pytest.TempPathFactory, double: ArangoDouble) -> Views:
    """One graph as a snapshot and on a server."""
    return put_on_both(PASSAGES, tmp_path_factory.mktemp("turns"), double)


@pytest.fixture
def views(shared_views: Views) -> Views:
    """The same, of which no turn has left anything in memory."""
    shared_views.live._kept = None
    return shared_views


def put_on_both(
    passages: Sequence[tuple[str, str]],
    home: Path,
    double: ArangoDouble,
    dates: Sequence[datetime | None] = (),
) -> Views:
    embedded, server = empty_store(home / "graph.db"), arango_store(double)
    source = Listed(
        [
            passage(f"p{place}", title, text, created=created)
            for place, ((title, text), created) in enumerate(zip_longest(passages, dates))
        ]
    )
    ingest(IngestContext(embedded, HashingEmbedder(), TOKENIZER, home / "cache"), source)
    publish(embedded, home)
    copy_rows(embedded, server)
    live = ArangoView(server)
    assert live.info.nodes["doc_chunks"] >= len(passages)  # counted once, not in a turn, ...
    assert live.words  # ... as are these
    return Views(open_snapshot(home), live)


def copy_rows(source: GraphStore, target: GraphStore) -> None:
    with target.bulk(NAMES) as inside:
        for collection in sorted(COLLECTIONS, key=lambda one: one.edge is not None):
            for batch in source.scan(collection.name):
                inside.upsert(collection.name, pa.Table.from_batches([batch]))


def ask(view: OpenView, question: str, recipe: str = "auto", mask: Mask = Mask()) -> Retrieval:
    tools = Tools(TOKENIZER, HashingEmbedder(), clock=lambda: 0.0)
    return retrieve(view, question, tools, at=AT, recipe=recipe, mask=mask)


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


def test_a_build_tells_the_server_how_rare_words_are(views: Views) -> None:
    fields = ("title", "words", "text")
    rows = scan_rows(views.live.store, "doc_chunks", columns=fields)
    texts = [words(" ".join(row[name] or "" for name in fields)) for row in rows]
    counted = views.live.words[Kind.CHUNK]
    assert (counted.texts, counted.mean_words) == (len(texts), sum(map(len, texts)) / len(texts))
    place = counted.hashes.tolist().index(hash_texts(terms("town"))[0])
    assert counted.holders[place] == sum("town" in own for own in texts)


@pytest.mark.parametrize("recipe", ["auto", "hirag_pathrag", "hipporag"])
def test_a_turn_answers_as_over_the_snapshot_of_the_same_rows(views: Views, recipe: str) -> None:
    for question in QUESTIONS[: examples(7)]:
        here, there = ask(views.live, question, recipe), ask(views.snapshot, question, recipe)
        assert (here.passages, here.paths, here.reasons) == (
            there.passages,
            there.paths,
            there.reasons,
        ), question


@pytest.mark.parametrize(
    "question", ["Which turbines did the zeppelins of Xanadu have?", "What was fought in 1,759?"]
)
def test_words_that_no_passage_holds_count_alike_on_both_views(views: Views, question: str) -> None:
    here, there = ask(views.live, question), ask(views.snapshot, question)
    assert (here.passages, here.reasons, here.confidence) == (
        there.passages,
        there.reasons,
        there.confidence,
    )
    assert (here.absence and here.absence.unknown_words) == (
        there.absence and there.absence.unknown_words
    )


def test_a_part_of_the_graph_knows_the_words_of_the_whole(views: Views) -> None:
    part = views.live.around(["Bremen"], [], "", [], hops=0).view
    metered = MeteredView(part, budget.Turn(budget.Caps(100, 1_000_000, 60_000)))
    for view in (part, metered):
        assert view.holds_word("Godiva")
        assert not view.holds_word("zeppelin")


def test_what_shares_words_with_another_text_is_fetched_when_it_is_asked_for(views: Views) -> None:
    found = views.live.around(["Bremen"], [], "", [], hops=0)
    found.view.lexical("Lady Godiva", kind=Kind.CHUNK, limit=3)
    here = views.live.further(found).view
    hits, whole = (
        view.lexical("Lady Godiva", kind=Kind.CHUNK, limit=3) for view in (here, views.snapshot)
    )
    assert here.ids(hits.numbers) == views.snapshot.ids(whole.numbers)
    assert not here.missing().texts


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_every_recipe_waits_for_the_server_at_most_four_times(views: Views, recipe: str) -> None:
    """What does not need the answer of another query is asked at the same time."""
    with count_requests() as asked:
        found = ask(views.live, QUESTIONS[1], recipe)
    assert found.passages
    assert found.telemetry.reads <= found.plan.budget.docs_max
    assert found.telemetry.counters["round_trips"] <= 4
    assert found.telemetry.counters["round_trips"] <= asked() <= 10


def test_a_turn_goes_on_from_what_earlier_turns_fetched(views: Views) -> None:
    """The same question again waits for its searches alone, and gives the same answer."""
    first = ask(views.live, QUESTIONS[1])
    with count_requests() as asked:
        again = ask(views.live, QUESTIONS[1])
    assert (again.passages, again.paths, again.reasons) == (
        first.passages,
        first.paths,
        first.reasons,
    )
    assert again.telemetry.counters["round_trips"] == 1
    assert asked() <= 2


def test_what_earlier_turns_fetched_is_fetched_again_when_a_row_changes(views: Views) -> None:
    """Also a row that somebody wrote without HADES."""
    before = ask(views.live, QUESTIONS[1])
    documents = views.live.store.session.db.collection("documents")
    key = next(documents.keys())
    documents.update({"_key": key, "title": documents.get(key)["title"]})
    after = ask(views.live, QUESTIONS[1])
    assert after.telemetry.counters["round_trips"] > 1
    assert after.passages == before.passages


def test_a_half_applied_write_is_met_also_where_nothing_has_to_be_fetched(views: Views) -> None:
    live = ArangoView(views.live.store, lambda: views.snapshot)
    ask(live, QUESTIONS[1])
    journal = live.store.session.db.collection("write_journal")
    journal.insert({"_key": "halfway", "pieces": 2, "cost": 1, "collections": ["entities"]})
    try:
        assert ask(live, QUESTIONS[1]).snapshot == views.snapshot.info.snapshot
    finally:
        journal.delete("halfway")


def test_a_question_asked_from_a_document_is_answered_as_over_the_snapshot(views: Views) -> None:
    place = views.snapshot.passages(
        views.snapshot.lexical("Weser", kind=Kind.CHUNK, limit=1).numbers
    )[0].document_id
    tools = Tools(TOKENIZER, HashingEmbedder(), clock=lambda: 0.0)
    here, there = (
        retrieve(view, QUESTIONS[2], tools, at=AT, near=[place])
        for view in (views.live, views.snapshot)
    )
    assert here.passages == there.passages


def test_more_edges_than_are_fetched_are_told(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not views.live.around([QUESTIONS[0]], [], "", []).is_cut
    monkeypatch.setattr(neighbourhood, "_EDGES", 20)
    assert Reason.CAP_EXCEEDED in ask(views.live, QUESTIONS[0]).reasons


def test_a_neighbourhood_that_was_cut_says_so_and_scores_words_as_the_whole(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbourhood, "_HITS", 4)
    monkeypatch.setattr(neighbourhood, "_EDGES", 0)
    assert Reason.CAP_EXCEEDED in ask(views.live, QUESTIONS[0]).reasons
    part, whole = views.live.around([QUESTIONS[0]], [], "", []).view, views.snapshot
    here = part.lexical(QUESTIONS[0], kind=Kind.CHUNK, limit=2)
    there = whole.lexical(QUESTIONS[0], kind=Kind.CHUNK, limit=2)
    assert part.ids(here.numbers) == whole.ids(there.numbers)
    assert here.scores == pytest.approx(there.scores)


def test_a_neighbourhood_that_does_not_come_in_time_ends_in_a_reason_not_in_an_error(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(self: ArangoView, *args: object) -> NoReturn:
        raise QueryTimeout("reading rows took longer than 0.8 s")

    monkeypatch.setattr(ArangoView, "_read", too_late)
    assert Reason.TIMEOUT in ask(views.live, QUESTIONS[0]).reasons


def test_an_answer_read_while_a_large_write_is_applied_says_so(views: Views) -> None:
    journal = views.live.store.session.db.collection("write_journal")
    journal.insert({"_key": "halfway", "pieces": 2, "cost": 1, "collections": ["entities"]})
    try:
        assert Reason.VIEW_DEGRADED in ask(views.live, QUESTIONS[0]).reasons
    finally:
        journal.delete("halfway")
    assert Reason.VIEW_DEGRADED not in ask(views.live, QUESTIONS[0]).reasons


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
def test_a_turn_that_meets_a_half_applied_write_answers_from_the_snapshot_alone(
    views: Views, recipe: str
) -> None:
    """Rows of the new state lie in the store already; nothing of them may be shown."""
    server = views.live.store
    live = ArangoView(server, lambda: views.snapshot)
    row = {
        "_key": "half",
        "name": "Charlemagne",
        "name_lower": "charlemagne",
        "type": "concept",
        "summary": "NEW",
    }
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
def test_a_question_is_answered_where_the_server_is_too_slow_to_look_behind_edges(
    views: Views, double: ArangoDouble
) -> None:
    """Refusing what stands in the graph would be worse than a walk that ends early."""
    double.faults.error(1500, matching="What lies behind the edges")
    found = ask(views.live, QUESTIONS[0])
    assert found.passages[0] == ask(views.snapshot, QUESTIONS[0]).passages[0]
    assert Reason.TIMEOUT not in found.reasons
    assert double.faults.pending() == 0


@pytest.mark.skipif(bool(REAL_SERVER), reason="the fault is injected into the double")
def test_a_search_by_vector_that_takes_too_long_is_left_out_for_a_while(
    views: Views, double: ArangoDouble
) -> None:
    """Once may be a cold start; after twice in a row it is not tried for a while."""
    live = ArangoView(views.live.store)
    double.faults.error(1500, matching="Passages, entities and topics by cosine")
    cold, warm = ask(live, QUESTIONS[0]), ask(live, QUESTIONS[0])
    assert Reason.CAP_EXCEEDED in cold.reasons
    assert Reason.CAP_EXCEEDED not in warm.reasons
    for _search in range(2):
        double.faults.error(1500, matching="Passages, entities and topics by cosine")
        assert Reason.CAP_EXCEEDED in ask(live, QUESTIONS[0]).reasons
    left_out = ask(live, QUESTIONS[0])
    assert left_out.passages
    assert Reason.CAP_EXCEEDED in left_out.reasons
    assert double.faults.pending() == 0


def test_a_turn_says_that_the_server_cuts_texts_otherwise_than_declared(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Reason.ANALYZER_MISMATCH not in ask(views.live, QUESTIONS[0]).reasons
    declared = provision.Analyzer(
        "text", {"locale": "en", "stemming": False}, ("frequency", "norm", "position")
    )
    monkeypatch.setitem(provision.ANALYZERS, ANALYZER, declared)
    assert Reason.ANALYZER_MISMATCH in ask(ArangoView(views.live.store), QUESTIONS[0]).reasons


def test_time_at_the_server_is_counted_by_the_clock_of_turns(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, limits = ArangoView(views.live.store), list[float]()
    monkeypatch.setattr(turn_clock, "read_clock", lambda: 5.0)  # it stands still
    query = live.store.session.query
    monkeypatch.setattr(
        live.store.session,
        "query",
        lambda *asked, runtime_s=None, **given: (
            limits.append(runtime_s) or query(*asked, runtime_s=runtime_s, **given)
        ),
    )
    live.around(["Charlemagne"], [], "", [], 30.0)
    assert {one for one in limits if one is not None} == {30.0}


def test_a_round_that_takes_too_long_leaves_the_answer_of_the_one_before(views: Views) -> None:
    now, further_s = [0.0], 0.0

    class Slow(ArangoView):
        def around(self, *given: Any, **named: Any) -> Neighbourhood:
            now[0] += 0.4
            return super().around(*given, **named)

        def further(self, *given: Any, **named: Any) -> Neighbourhood:
            now[0] += further_s
            return super().further(*given, **named)

    for further_s in (1.7, 1.0, 0.1):  # noqa: B007
        now[0], live = 0.0, Slow(views.live.store)
        answer = retrieve(
            live, QUESTIONS[3], Tools(TOKENIZER, HashingEmbedder(), clock=lambda: now[0]), at=AT
        )
        assert answer.passages
        assert {Reason.TIMEOUT, Reason.ABSTAINED, Reason.NO_PATHS}.isdisjoint(answer.reasons)
        is_whole = ask(views.live, QUESTIONS[3]).passages == answer.passages
        assert is_whole or Reason.CAP_EXCEEDED in answer.reasons


def documented_functions(most: int) -> list[tuple[str, str]]:
    """Names and docstrings of functions and classes of the standard library."""
    paths = sorted(_STDLIB.glob("*.py"))[::2]
    trees = {path.stem: ast.parse(path.read_text("utf-8")) for path in paths}
    found = [
        (f"{module}.{node.name}", text)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and len(text := ast.get_docstring(node) or "") > 300
    ]
    return found[:: len(found) // most][:most]


@pytest.mark.parametrize("recipe", ["auto", "hirag_pathrag", "hipporag"])
def test_hundreds_of_passages_are_answered_as_over_the_snapshot(
    many: tuple[Views, Sequence[tuple[str, str]]], recipe: str
) -> None:
    views, texts = many
    for _, text in texts[:: len(texts) // examples(3)]:
        question = " ".join(text.split()[:20])
        here, there = (
            retrieve_whole(view, question, recipe) for view in (views.live, views.snapshot)
        )
        assert [one.id for one in here.passages] == [one.id for one in there.passages], question
        assert here.telemetry.counters["round_trips"] <= 10


@pytest.fixture(scope="module")
def many(
    tmp_path_factory: pytest.TempPathFactory, double: ArangoDouble
) -> tuple[Views, Sequence[tuple[str, str]]]:
    texts = documented_functions(300)
    return put_on_both(texts, tmp_path_factory.mktemp("many"), double), texts


def retrieve_whole(view: OpenView, question: str, recipe: str) -> Retrieval:
    """The answer without a limit of time or of reads that a turn meets."""
    tools = Tools(TOKENIZER, HashingEmbedder(), clock=lambda: 0.0)
    return retrieve(view, question, tools, at=AT, recipe=recipe, plan=Plan(profile="evaluation"))
