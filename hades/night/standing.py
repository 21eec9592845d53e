"""Standing questions: asked of the graph that serves and of the next one, before the pointer
moves.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from hades.errors import HadesError, NotProvisioned
from hades.night.columns import Frames, kind_numbers
from hades.night.contracts.check import check_frames, require_contracts
from hades.night.contracts.exam import STANDING_CONTRACT
from hades.night.contracts.rule import ContractResult
from hades.night.stage import Report
from hades.ports.graph import DocumentFilter, Kind, Passage
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
from schemas.plan import Plan, Profile
from schemas.record import JsonObject, to_table

STANDING = "standing_questions"
FROM_LOG = 20  # questions of the log that are kept at once, the most frequent first
# The clock of a turn stands still; this is the time that a slow embedder may take.
_UNHURRIED = Plan().model_copy(
    update={
        "profile": Profile.EVALUATION,
        "budget": Plan().budget.model_copy(update={"latency_ms": 30_000}),
    }
)
_AT = datetime(2000, 1, 1, tzinfo=UTC)  # of every turn: ids of turns are not compared
_CANDIDATES = 12  # changed documents that are masked one by one to find a cause
_SHOWN = 300  # characters of an answer in a report
_SAME = "same"
_MASKED = 5_000  # documents that are masked together
_PARTS = {
    "weights": "the weights of edges",
    "hierarchy": "the topics",
    "bridges": "the bridges between topics",
}


Cause = dict[str, str]  # of a changed answer: kind, subject, sentence
# The words of a question, and the source that its answer must cite or an empty text.
Question = tuple[str, str]


class UnknownStanding(HadesError):
    """No standing question has this id."""

    http_status = 404


def add_standing(
    store: RowStore,
    questions: Sequence[Question],
    at: datetime,
) -> list[StandingQuestion]:
    """Keep questions, each with the source that its answer must cite or an empty text; a known one
    is replaced.
    """
    rows = []
    for text, source in questions:
        if text.strip():
            rows.append(
                StandingQuestion(
                    key=content_key("sq", text.strip()),
                    question=text.strip(),
                    requires=source,
                    added=at,
                )
            )

    if rows:
        store.upsert(
            STANDING,
            to_table(StandingQuestion, list({row.key: row for row in rows}.values())),
        )

    return rows


def list_standing(store: RowStore) -> list[StandingQuestion]:
    """Every standing question, the oldest first; none in a store of an older version."""
    try:
        rows = []
        for row in scan_rows(store, STANDING):
            rows.append(StandingQuestion.model_validate(row))
    except NotProvisioned:
        return []

    return sorted(
        rows,
        key=lambda question: (question.added, question.key),
    )


def remove_standing(store: RowStore, key: str) -> StandingQuestion:
    """Forget a standing question, by its id or its words."""
    for question in list_standing(store):
        if key in (question.key, question.question):
            store.delete(STANDING, keys=[question.key])
            return question

    raise UnknownStanding(
        f"no standing question has the id {key!r}; `hades standing list` shows them"
    )


def read_questions(path: Path) -> list[Question]:
    """The questions of a file: one a line, as text or as JSON with `question` and perhaps
    `requires`.
    """
    questions = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip().startswith("{"):
            try:
                row = json.loads(line)
                questions.append((str(row["question"]), str(row.get("requires", ""))))
            except (ValueError, KeyError) as error:
                raise HadesError(
                    f'{path}:{number} is no {{"question": ...}}: {error}; fix the line'
                ) from None
        elif line.strip():
            questions.append((line.strip(), ""))

    return questions


def frequent_questions(store: RowStore) -> list[Question]:
    """The questions of the log that were asked most often, at most `FROM_LOG`; not what already
    stands.
    """
    standing_texts = set()
    for question in list_standing(store):
        standing_texts.add(question.question.casefold())

    texts = scan_values(store, QUERY_LOGS, "query")
    counts = Counter(text for text in texts if text.strip().casefold() not in standing_texts)
    frequent = sorted(counts, key=lambda text: (-counts[text], text))
    return [(text, "") for text in frequent[:FROM_LOG]]


@dataclass(frozen=True)
class StandingAnswer:
    """What a graph answers: the text that is shown of the best source, and the passages behind
    it.
    """

    retrieval: Retrieval
    text: tuple[str, ...] = ()
    source: CitedPassage | None = None
    cited: tuple[CitedPassage, ...] = ()

    def says_the_same(self, other_answer: StandingAnswer) -> bool:
        """Whether both show the same text, or a text of the very same passage."""
        if self.source is None or other_answer.source is None:
            return self.source is other_answer.source
        if self.source.document != other_answer.source.document:
            return False

        return self.source.text == other_answer.source.text or self.text == other_answer.text

    def cites(self, source: str) -> bool:
        """Whether a cited passage is of this source: its document, path, title or id."""
        for passage in self.cited:
            names = (passage.document, passage.document_id, passage.path, passage.title, passage.id)
            if source in names:
                return True

        return False


def check_standing(
    questions: Sequence[StandingQuestion],
    old_view: GraphView | None,
    new_view: GraphView,
    tools: Tools,
    old_tools: Tools | None = None,
    *,
    shows_all: bool = False,
) -> JsonObject:
    """How many were asked, which answers changed and why, and which lack a source that they
    require.

    Where both graphs are the same only requirements are looked at. The former graph is asked with
    `old_tools`, where its settings are others. With `shows_all` answers that stay are among them.
    """
    began = time.perf_counter()
    is_same = old_view is None or old_view.info.snapshot == new_view.info.snapshot
    tools = _remembering(tools)

    if old_tools is None:
        old_tools = tools
    else:
        old_tools = _remembering(old_tools)

    if is_same or old_view is None:
        changes = None
    else:
        changes = GraphChanges(old_view, new_view)

    answers = []
    lacking = []
    for question in questions:
        if changes is not None:
            asker = Asker(
                question.question,
                tools,
                changes.before,
                changes.after,
                old_tools,
            )
            old, new = asker.answers()
            if not old.says_the_same(new):
                answers.append(
                    _describe(
                        question,
                        old,
                        new,
                        changes.find_causes(asker, old, new),
                    )
                )
            elif shows_all:
                answers.append(
                    {
                        **_describe(question, old, new, []),
                        "change": _SAME,
                    }
                )
        elif question.requires:
            new = Asker(question.question, tools, new_view, new_view).answers()[1]

        if question.requires:
            demand = {
                "question": question.question,
                "requires": question.requires,
            }
            cited = ", ".join(dict.fromkeys(passage.document for passage in new.cited))
            is_met = new.cites(question.requires)
            lacking.append(
                {
                    "_key": question.key,
                    **demand,
                    "cited": cited,
                    "cites": is_met,
                }
            )

    return {
        "asked": len(questions),
        "changed": sum(answer["change"] != _SAME for answer in answers),
        "seconds": round(time.perf_counter() - began, 3),
        "answers": answers,
        "required": lacking,
    }


def _remembering(tools: Tools) -> Tools:
    """The same tools, which embed a text once."""
    if tools.embedder is None:
        return tools
    return replace(tools, embedder=RememberingEmbedder(tools.embedder))


class Asker:
    """One question of the former and the next graph, also without some documents and with ranking
    by hand.
    """

    def __init__(
        self,
        text: str,
        tools: Tools,
        old_view: GraphView,
        new_view: GraphView,
        old_tools: Tools | None = None,
    ) -> None:
        self._text = text
        self._asked = ((old_view, _still(old_tools or tools)), (new_view, _still(tools)))

    def answer(self, view: GraphView) -> StandingAnswer:
        """What one graph answers."""
        _, tools = self._asked[1]
        replay = replay_on(
            view,
            tools,
            self._text,
            _UNHURRIED,
            at=_AT,
        )
        return _quote_answer(replay(()), tools)

    def answers(
        self,
        without: tuple[str, ...] = (),
        *,
        by_hand: bool = False,
    ) -> tuple[StandingAnswer, StandingAnswer]:
        """What both graphs answer."""
        turns = []
        for view, tools in self._asked:
            if by_hand:
                tools = replace(tools, judge=lambda view, question: BY_HAND)
            turns.append(
                replay_on(
                    view,
                    tools,
                    self._text,
                    _UNHURRIED,
                    at=_AT,
                )(without)
            )

        (_, old_tools), (_, new_tools) = self._asked
        old, new = turns
        answer = _quote_answer(old, old_tools)

        if old_tools.embedder is new_tools.embedder and _shown(old) == _shown(new):
            return answer, answer

        return answer, _quote_answer(new, new_tools)


def _still(tools: Tools) -> Tools:
    """No clock, no exploration and no memory: what differs is what the graphs say."""
    return replace(
        tools,
        clock=lambda: 0.0,
        swapping=ExplorationRules(),
        memory=None,
    )


def _quote_answer(retrieval: Retrieval, tools: Tools) -> StandingAnswer:
    """The sentences of the best source that are shown, and every passage that is cited."""
    quoted = quote(retrieval, tools.embedder)
    if not quoted:
        return StandingAnswer(retrieval)

    passages = passages_by_number(retrieval)
    numbers = chain.from_iterable(sentence.citations for sentence in quoted)
    cited = tuple(passages[number] for number in numbers if number in passages)
    first = quoted[0].citations
    text = tuple(sentence.text for sentence in quoted if sentence.citations == first)
    return StandingAnswer(
        retrieval,
        text,
        cited[0] if cited else None,
        cited,
    )


def _shown(retrieval: Retrieval) -> tuple[bool, list[tuple[str, str, float]]]:
    """What an answer is written from: two turns that agree in this say the same. How far passages
    are apart decides which one is quoted.
    """
    passages = []
    for passage in retrieval.passages:
        passages.append((passage.document, passage.text, passage.score))

    return not retrieval.is_answered, passages


def _describe(
    question: StandingQuestion,
    old: StandingAnswer,
    new: StandingAnswer,
    causes: list[Cause],
) -> JsonObject:
    """A changed answer: what it said and says, from where, and why."""
    change = "changed" if new.source else "lost"
    return {
        "key": question.key,
        "question": question.question,
        "change": change if old.source else "found",
        "before": _excerpt(old),
        "after": _excerpt(new),
        "source_before": old.source.document if old.source else "",
        "source_after": new.source.document if new.source else "",
        "causes": causes,
    }


def _excerpt(answer: StandingAnswer) -> str:
    return " ".join(" ".join(answer.text).split())[:_SHOWN]


def _numbers_of_passages(view: GraphView) -> dict[str, int]:
    numbers = kind_numbers(view.info.nodes, Kind.CHUNK.value)
    return dict(zip(view.ids(numbers), numbers.tolist(), strict=True))


def _only_in(
    view: GraphView,
    numbers: Mapping[str, int],
    known: Mapping[str, int],
) -> list[Passage]:
    """The passages of a graph that the other one does not have, in their order."""
    own_numbers = sorted(numbers[passage_id] for passage_id in numbers.keys() - known.keys())
    return view.passages(np.array(own_numbers, np.int64))


class GraphChanges:
    """What differs between two graphs; which of it changes an answer is asked of both without
    it.
    """

    def __init__(self, old_view: GraphView, new_view: GraphView) -> None:
        self.before, self.after = old_view, new_view
        self.names: dict[str, str] = {}  # of `documents`, once they were asked for

    @cached_property
    def passages(self) -> tuple[list[Passage], list[Passage]]:
        """The passages that only the former graph has, and those that only the next one has."""
        old = _numbers_of_passages(self.before)
        new = _numbers_of_passages(self.after)
        return _only_in(self.before, old, new), _only_in(self.after, new, old)

    @cached_property
    def documents(self) -> dict[str, str]:
        """The `_id` of every document that was added, changed or removed, and which of these it
        was.
        """
        for passage in chain(*self.passages):
            self.names[passage.document_id] = passage.document

        ids = sorted(self.names)
        was_there = self.before.selects_documents(ids, DocumentFilter())
        is_there = self.after.selects_documents(ids, DocumentFilter())
        kinds = {
            (False, True): "added",
            (True, False): "removed",
        }

        changes = {}
        for document_id, was, stays in zip(ids, was_there, is_there, strict=True):
            changes[document_id] = kinds.get((was, stays), "changed")

        return changes

    def find_causes(
        self,
        asker: Asker,
        old: StandingAnswer,
        new: StandingAnswer,
    ) -> list[Cause]:
        """The first change without which both graphs answer the same; what is left where none is
        found.
        """
        shown = (old.source, new.source, *old.retrieval.passages, *new.retrieval.passages)
        shown_documents = dict.fromkeys(passage.document_id for passage in shown if passage)
        near_documents = [document for document in shown_documents if document in self.documents]

        for document in near_documents[:_CANDIDATES]:
            if _agree(asker.answers((document,))):
                return [self._document(document)]

        if len(near_documents) > 1 and _agree(asker.answers(tuple(near_documents))):
            causes = []
            for document_id in near_documents:
                causes.append(self._document(document_id))

            return causes

        if self.documents and _agree(asker.answers(tuple(self.documents)[:_MASKED])):
            sentence = f"{len(self.documents):,} documents changed which words are rare"
            return [_cause("documents", "", sentence)]

        return [next(self._other_causes(asker, old.retrieval.query))]

    def _document(self, document: str) -> Cause:
        change = self.documents[document]
        name = self.names[document]
        return _cause("document", name, f"{name} was {change}")

    def _other_causes(self, asker: Asker, question: str) -> Iterator[Cause]:
        """A model of vectors or of the ranking, names that stand for other entities, parts; else
        that none is known.
        """
        chunk = Kind.CHUNK.value
        if self.before.info.models.get(chunk) != self.after.info.models.get(chunk):
            tags = ", ".join(self.after.info.models.get(chunk, ()))
            yield _cause(
                "model",
                tags,
                f"passages have vectors of {tags or 'no model'}",
            )

        if self._differs("ranker") and _agree(asker.answers(by_hand=True)):
            yield _cause(
                "model",
                "ranker",
                "the learned ranker is another one",
            )

        old = set(self.before.ids(self.before.match_names(question).numbers))
        new = set(self.after.ids(self.after.match_names(question).numbers))
        if old != new:  # entities were merged or split
            entities = ", ".join(sorted(old ^ new))
            sentence = f"names of the question stand for other entities: {entities}"
            yield _cause("entity", entities, sentence)

        for part, about in _PARTS.items():
            if self._differs(part):
                yield _cause(part, part, f"{about} changed")

        yield _cause(
            "unknown",
            "",
            "no single change explains it",
        )

    def _differs(self, part: str) -> bool:
        return self.before.info.parts.get(part, "") != self.after.info.parts.get(part, "")


def _agree(both: tuple[StandingAnswer, StandingAnswer]) -> bool:
    return both[0].says_the_same(both[1])


def _cause(kind: str, subject: str, sentence: str) -> Cause:
    return {
        "kind": kind,
        "subject": subject,
        "sentence": sentence,
    }


def ask_standing(
    store: RowStore,
    tools: Callable[[], Tools] | None,
    home: Path,
    folder: Path,
) -> JsonObject:
    """Ask every standing question of the graph that serves and of the one in the folder; raises for
    a red one.
    """
    questions = list_standing(store)
    if not questions or tools is None:
        return {}

    with closing(open_folder(folder)) as new_view:
        report = check_standing(
            questions,
            open_former(home),
            new_view,
            tools(),
        )

    require_contracts([check_required(report)])
    return report


def check_required(report: Report) -> ContractResult:
    """Check that answers cite the sources that they must."""
    rows = []
    for row in report["required"]:
        cited = row["cited"] or "nothing"
        sentence = f"{row['question']} It must cite {row['requires']} and cites {cited}"
        rows.append({**row, "_key": sentence})

    if rows:
        tables = {"questions": pa.Table.from_pylist(rows)}
    else:
        tables = {}

    return check_frames(
        STANDING_CONTRACT.name,
        STANDING_CONTRACT,
        lambda: Frames(tables),
    )


def standing_rows(report: Report) -> list[JsonObject]:
    """A row for each changed answer, for tables."""
    rows = []
    for answer in report.get("answers", ()):
        row = {}
        for name in ("question", "change", "before", "after"):
            row[name] = answer[name]

        row["cause"] = "; ".join(cause["sentence"] for cause in answer["causes"])
        rows.append(row)

    return rows
