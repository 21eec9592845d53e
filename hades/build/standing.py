"""Standing questions: asked of the graph that serves and of the next one, before the pointer moves."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hades.build.columns import Frames, kind_numbers
from hades.build.contracts.check import check_frames, require_contracts
from hades.build.contracts.outputs import STANDING_CONTRACT
from hades.errors import HadesError, NotProvisioned
from hades.ports.graph import DocumentFilter, Kind
from hades.ports.services import RememberingEmbedder
from hades.ports.store import RowStore, scan_rows, scan_values
from hades.retrieval.necessity import passages_by_number, quote, replay_on
from hades.retrieval.pipeline import Tools
from hades.retrieval.ranking.judge import BY_HAND
from hades.retrieval.ranking.select import ExplorationRules
from hades.retrieval.turn_result import QUERY_LOGS
from hades.snapshot.open import open_folder, open_former
from hades.snapshot.view import GraphView
from schemas.answer import CitedPassage, Retrieval
from schemas.builds import StandingQuestion
from schemas.ids import content_key
from schemas.plan import Plan, Profile, Reason
from schemas.record import to_table

STANDING = "standing_questions"
FROM_LOG = 20  # questions of the log that are kept at once, the most frequent first
# The clock of a turn stands still; this is the time that a slow embedder may take.
_UNHURRIED = Plan().model_copy(
    update={"profile": Profile.EVALUATION, "budget": Plan().budget.model_copy(update={"latency_ms": 30_000})}
)
_AT = datetime(2000, 1, 1, tzinfo=UTC)  # of every turn: ids of turns are not compared
_CANDIDATES = 12  # changed documents that are masked one by one to find a cause
_SHOWN = 300  # characters of an answer in a report
_MASKED = 5_000  # documents that are masked together
_PARTS = {"weights": "the weights of edges", "hierarchy": "the topics", "bridges": "the bridges between topics"}


class UnknownStanding(HadesError):
    """No standing question has this id."""

    http_status = 404


def add_standing(store: RowStore, questions: Sequence[tuple[str, str]], at: datetime) -> list[StandingQuestion]:
    """Keep questions, each with the source that its answer must cite or an empty text; a known one is replaced."""
    rows = [
        StandingQuestion(key=content_key("sq", text.strip()), question=text.strip(), requires=source, added=at)
        for text, source in questions
        if text.strip()
    ]
    if rows:
        store.upsert(STANDING, to_table(StandingQuestion, list({one.key: one for one in rows}.values())))
    return rows


def list_standing(store: RowStore) -> list[StandingQuestion]:
    """Every standing question, the oldest first; none in a store of an older version."""
    try:
        rows = [StandingQuestion.model_validate(row) for row in scan_rows(store, STANDING)]
    except NotProvisioned:
        return []
    return sorted(rows, key=lambda one: (one.added, one.key))


def remove_standing(store: RowStore, key: str) -> StandingQuestion:
    """Forget a standing question, by its id or its words."""
    for one in list_standing(store):
        if key in (one.key, one.question):
            store.delete(STANDING, keys=[one.key])
            return one
    raise UnknownStanding(f"no standing question has the id {key!r}; `hades standing list` shows them")


def read_questions(path: Path) -> list[tuple[str, str]]:
    """The questions of a file: one a line, as text or as JSON with `question` and perhaps `requires`."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip().startswith("{"):
            try:
                row = json.loads(line)
                found.append((str(row["question"]), str(row.get("requires", ""))))
            except (ValueError, KeyError) as error:
                raise HadesError(f'{path}:{number} is no {{"question": ...}}: {error}; fix the line') from None
        elif line.strip():
            found.append((line.strip(), ""))
    return found


def frequent_questions(store: RowStore) -> list[tuple[str, str]]:
    """The questions of the log that were asked most often, at most `FROM_LOG`; not what already stands."""
    stands = {one.question.casefold() for one in list_standing(store)}
    asked = Counter(text for text in scan_values(store, QUERY_LOGS, "query") if text.strip().casefold() not in stands)
    return [(text, "") for text, _ in sorted(asked.items(), key=lambda one: (-one[1], one[0]))[:FROM_LOG]]


@dataclass(frozen=True)
class StandingAnswer:
    """What a graph answers: the text that is shown of the best source, and the passages behind it."""

    found: Retrieval
    text: tuple[str, ...] = ()
    source: CitedPassage | None = None
    cited: tuple[CitedPassage, ...] = ()

    def says_the_same(self, other: StandingAnswer) -> bool:
        """Whether both show the same text, or a text of the very same passage."""
        if self.source is None or other.source is None:
            return self.source is other.source
        if self.source.document != other.source.document:
            return False
        return self.source.text == other.source.text or self.text == other.text

    def cites(self, source: str) -> bool:
        """Whether a cited passage is of this source: its document, path, title or id."""
        names = {name for one in self.cited for name in (one.document, one.document_id, one.path, one.title, one.id)}
        return source in names


def check_standing(
    questions: Sequence[StandingQuestion], before: GraphView | None, after: GraphView, tools: Tools
) -> dict[str, Any]:
    """How many were asked, which answers changed and why, and which lack a source that they require.

    Where both graphs are the same only requirements are looked at.
    """
    began = time.perf_counter()
    is_same = before is None or before.info.snapshot == after.info.snapshot
    tools = replace(tools, embedder=None if tools.embedder is None else RememberingEmbedder(tools.embedder))
    changes = None if is_same or before is None else GraphChanges(before, after)
    answers, lacking = [], []
    for one in questions:
        if changes is not None:
            asker = Asker(one.question, tools, changes.before, changes.after)
            old, new = asker.answers()
            if not old.says_the_same(new):
                answers.append(_describe(one, old, new, changes.find_causes(asker, old, new)))
        elif one.requires:
            new = Asker(one.question, tools, after, after).answers()[1]
        if one.requires:
            cited = ", ".join(dict.fromkeys(passage.document for passage in new.cited))
            lacking.append({"_key": one.key, "question": one.question, "requires": one.requires, "cited": cited,
                            "cites": new.cites(one.requires)})  # fmt: skip
    return {
        "asked": len(questions),
        "changed": len(answers),
        "seconds": round(time.perf_counter() - began, 3),
        "answers": answers,
        "required": lacking,
    }


class Asker:
    """One question of the former and the next graph, also without some documents and with ranking by hand."""

    def __init__(self, text: str, tools: Tools, before: GraphView, after: GraphView) -> None:
        # No clock, no exploration and no memory: what differs is what the graphs say.
        self._tools = replace(tools, clock=lambda: 0.0, swapping=ExplorationRules(), memory=None)
        self._text, self._views = text, (before, after)

    def answers(self, without: tuple[str, ...] = (), *, by_hand: bool = False) -> tuple[StandingAnswer, StandingAnswer]:
        """What both graphs answer."""
        tools = replace(self._tools, judge=lambda view, question: BY_HAND) if by_hand else self._tools
        old, new = (replay_on(view, tools, self._text, _UNHURRIED, at=_AT)(without) for view in self._views)
        read = self._read(old, tools)
        if _shown(old) == _shown(new):
            return read, read
        return read, self._read(new, tools)

    def _read(self, found: Retrieval, tools: Tools) -> StandingAnswer:
        quoted = quote(found, tools.embedder)
        if not quoted:
            return StandingAnswer(found)
        passages = passages_by_number(found)
        cited = [passages[number] for one in quoted for number in one.citations if number in passages]
        first = quoted[0].citations
        text = tuple(one.text for one in quoted if one.citations == first)
        return StandingAnswer(found, text, cited[0] if cited else None, tuple(cited))


def _shown(found: Retrieval) -> tuple[bool, list[tuple[str, str]]]:
    """What an answer is written from: two turns that agree in this say the same."""
    return Reason.ABSTAINED in found.reasons, [(one.document, one.text) for one in found.passages]


def _describe(
    one: StandingQuestion, old: StandingAnswer, new: StandingAnswer, causes: list[dict[str, str]]
) -> dict[str, Any]:
    """A changed answer: what it said and says, from where, and why."""
    change = "changed" if old.source and new.source else "lost" if old.source else "found"
    texts = [" ".join(" ".join(each.text).split())[:_SHOWN] for each in (old, new)]
    places = ["" if each.source is None else each.source.document for each in (old, new)]
    told = {"key": one.key, "question": one.question, "change": change, "before": texts[0], "after": texts[1]}
    return {**told, "source_before": places[0], "source_after": places[1], "causes": causes}


class GraphChanges:
    """What differs between two graphs; which of it changes an answer is asked of both without it."""

    def __init__(self, before: GraphView, after: GraphView) -> None:
        self.before, self.after = before, after
        self.names: dict[str, str] = {}  # of `documents`, once they were asked for

    @cached_property
    def documents(self) -> dict[str, str]:
        """The `_id` of every document that was added, changed or removed, and which of these it was."""
        both = [(view, kind_numbers(view.info.nodes, Kind.CHUNK.value)) for view in (self.before, self.after)]
        old, new = (dict(zip(view.ids(numbers), numbers.tolist(), strict=True)) for view, numbers in both)
        found = set()
        for view, numbers, other in ((self.before, old, new), (self.after, new, old)):
            differing = np.array([numbers[one] for one in sorted(numbers.keys() - other.keys())], np.int64)
            for passage in view.passages(differing):
                self.names[passage.document_id] = passage.document
                found.add(passage.document_id)
        ids = sorted(found)
        was, stays = (view.selects_documents(ids, DocumentFilter()) for view in (self.before, self.after))
        kinds = {(True, True): "changed", (False, True): "added", (True, False): "removed"}
        return {one: kinds.get(both, "changed") for one, both in zip(ids, zip(was, stays, strict=True), strict=True)}

    def find_causes(self, asker: Asker, old: StandingAnswer, new: StandingAnswer) -> list[dict[str, str]]:
        """The first change without which both graphs answer the same; what is left where none is found."""
        shown = (old.source, new.source, *old.found.passages, *new.found.passages)
        near = list(dict.fromkeys(one.document_id for one in shown if one and one.document_id in self.documents))
        for document in near[:_CANDIDATES]:
            if _agree(asker.answers((document,))):
                return [self._document(document)]
        if len(near) > 1 and _agree(asker.answers(tuple(near))):
            return [self._document(one) for one in near]
        if self.documents and _agree(asker.answers(tuple(self.documents)[:_MASKED])):
            return [_cause("documents", "", f"{len(self.documents):,} documents changed which words are rare")]
        return [next(self._other_causes(asker, old.found.query))]

    def _document(self, document: str) -> dict[str, str]:
        change, name = self.documents[document], self.names[document]
        return _cause("document", name, f"{name} was {change}")

    def _other_causes(self, asker: Asker, question: str) -> Iterator[dict[str, str]]:
        """A model of vectors or of the ranking, names that stand for other entities, parts; else that none is known."""
        chunk = Kind.CHUNK.value
        if self.before.info.models.get(chunk) != self.after.info.models.get(chunk):
            tags = ", ".join(self.after.info.models.get(chunk, ()))
            yield _cause("model", tags, f"passages have vectors of {tags or 'no model'}")
        if self._differs("ranker") and _agree(asker.answers(by_hand=True)):
            yield _cause("model", "ranker", "the learned ranker is another one")
        old, new = ({*view.ids(view.match_names(question).numbers)} for view in (self.before, self.after))
        if old != new:  # entities were merged or split
            moved = ", ".join(sorted(old ^ new))
            yield _cause("entity", moved, f"names of the question stand for other entities: {moved}")
        yield from (_cause(part, part, f"{about} changed") for part, about in _PARTS.items() if self._differs(part))
        yield _cause("unknown", "", "no single change explains it")

    def _differs(self, part: str) -> bool:
        return self.before.info.parts.get(part, "") != self.after.info.parts.get(part, "")


def _agree(both: tuple[StandingAnswer, StandingAnswer]) -> bool:
    return both[0].says_the_same(both[1])


def _cause(kind: str, subject: str, sentence: str) -> dict[str, str]:
    return {"kind": kind, "subject": subject, "sentence": sentence}


def ask_standing(store: RowStore, tools: Callable[[], Tools] | None, home: Path, folder: Path) -> dict[str, Any]:
    """Ask every standing question of the graph that serves and of the one in the folder; raises for a red one."""
    questions = list_standing(store)
    if not questions or tools is None:
        return {}
    with ExitStack() as opened:
        after = opened.enter_context(closing(open_folder(folder)))
        before = open_former(home)
        report = check_standing(questions, before, after, tools())
    rows = [
        {**one, "_key": f"{one['question']} It must cite {one['requires']} and cites {one['cited'] or 'nothing'}"}
        for one in report["required"]
    ]
    tables = {"questions": pa.Table.from_pylist(rows)} if rows else {}
    require_contracts([check_frames(STANDING_CONTRACT.name, STANDING_CONTRACT, lambda: Frames(tables))])
    return report


def standing_rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each changed answer, for tables."""
    return [
        {**{name: one[name] for name in ("question", "change", "before", "after")},
         "cause": "; ".join(cause["sentence"] for cause in one["causes"])}
        for one in report.get("answers", ())
    ]  # fmt: skip
