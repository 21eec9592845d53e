"""Since when a question has its answer, and what made it so: by asking the snapshots that are
kept, then by the sentences that each night changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hades.errors import NothingPublished, SnapshotError
from hades.ingest.sources.git import blame_sentence
from hades.night.history import DocumentChange, Move, changes_of, former_of, moves_of, plain
from hades.night.night_log import changed_settings
from hades.night.standing import Asker, GraphChanges, StandingAnswer
from hades.ports.services import RememberingEmbedder
from hades.retrieval.core.words import content_words, stem
from hades.retrieval.pipeline import Tools
from hades.settings.tree import HippoSettings, HiragPathrag
from hades.snapshot.open import open_folder
from hades.snapshot.pointer import root_of
from hades.snapshot.view import GraphView
from hades.text.sentences import sentences_of
from hades.text.words import words
from schemas.answer import CitedPassage
from schemas.ids import iso
from schemas.record import JsonObject
from schemas.sources import SourceSpec

_ALIKE = 0.5  # two sentences that share so much are versions of each other
_NEARER = 0.02  # by how much a sentence that went must be nearer to the question
_LONGEST = 300
_STOPS = (".", "!", "?", "。")
Report = dict[str, Any]


def blame(
    home: Path,
    question: str,
    tools: Tools,
    sources: Sequence[SourceSpec] = (),
) -> Report:
    """Since which night the answer is what it is, and by what.

    `certainty` is `asked` where the snapshots on both sides of the change were asked; `text` where
    only the sentences tell, because older snapshots are gone; `likely` where a sentence that went
    fits the question better than the one that answers now; `unknown` where nothing older is kept.
    """
    moves = moves_of(home)

    kept_moves = []
    for move in moves:
        if (root_of(home) / move.snapshot).is_dir():
            kept_moves.append(move)

    if not kept_moves:
        raise NothingPublished("nothing is published that could be asked; run `hades build`")
    if tools.embedder is not None:
        tools = replace(tools, embedder=RememberingEmbedder(tools.embedder))

    walk = _Walk(home, question, tools, kept_moves)
    first, former = walk.find_boundary()
    if former is not None:
        report = _explain_asked(walk, moves, former, first)
    else:
        report = _explain_by_texts(walk, moves, kept_moves[first])

    report["setting"] = _changed_setting(walk, kept_moves[first:])
    report["git"] = None
    if report["document"] is not None:
        report["git"] = _find_commit(sources, report["document"])

    return {
        "question": question,
        "answer": _excerpt(walk.now.text),
        "sentence": _excerpt((walk.key,)),
        "source": "" if walk.now.source is None else walk.now.source.document,
        **report,
        "sentences": _date_sentences(walk, moves),
        "former_names": _names_of_source(walk, moves),
        "asked_snapshots": len(walk.answers),
        "kept_since": kept_moves[0].day,
        "texts_since": next((move.day for move in moves if move.has_texts), ""),
    }


@dataclass
class _Walk:
    """The answers of the kept snapshots, oldest first, each asked once."""

    home: Path
    question: str
    tools: Tools
    kept_moves: Sequence[Move]

    def __post_init__(self) -> None:
        self.answers: dict[str, StandingAnswer | None] = {}

    def answer(self, place: int) -> StandingAnswer | None:
        """What the snapshot of a move answers; None where it cannot be read any more."""
        snapshot = self.kept_moves[place].snapshot
        if snapshot not in self.answers:
            try:
                with closing(open_folder(root_of(self.home) / snapshot)) as view:
                    self.answers[snapshot] = self.ask(view, self.tools)
            except SnapshotError:
                self.answers[snapshot] = None

        return self.answers[snapshot]

    def ask(self, view: GraphView, tools: Tools) -> StandingAnswer:
        """What a graph answers with these tools."""
        return Asker(self.question, tools, view, view).answer(view)

    @cached_property
    def now(self) -> StandingAnswer:
        """The answer to explain."""
        answer = self.answer(len(self.kept_moves) - 1)
        if answer is None:
            raise SnapshotError("the snapshot that serves cannot be read; run `hades doctor`")

        return answer

    @cached_property
    def parts(self) -> list[str]:
        """The sentences of the answer."""
        lines = [sentences_of(sentence) for sentence in self.now.text]
        return list(dict.fromkeys(map(plain, chain.from_iterable(lines))))

    @cached_property
    def key(self) -> str:
        """The sentence that answers; prose before lines of tables and code."""
        return self.nearest([part for part in self.parts if part.endswith(_STOPS)] or self.parts)

    def nearest(self, sentences: Sequence[str]) -> str:
        """The sentence that fits the question best, by its vector and the words they share."""
        if self.tools.embedder is None or not sentences:
            return next(iter(sentences), "")

        vectors = self.tools.embedder.embed([self.question, *sentences])
        stems = _stems(self.question)

        shares = []
        for text in sentences:
            shares.append(len(stems & _stems(text)) / max(1, len(stems)))

        return sentences[int(np.argmax(vectors[1:] @ vectors[0] + np.array(shares)))]

    @cached_property
    def _changes(self) -> dict[str, list[DocumentChange]]:
        return {}

    def changes(self, move: Move) -> list[DocumentChange]:
        """What a move changed in the texts, read once."""
        if move.at not in self._changes:
            self._changes[move.at] = changes_of(self.home, move)
        return self._changes[move.at]

    def is_same(self, place: int) -> bool:
        """Whether a snapshot answers as the newest one does: the same by the rule of standing
        questions, or by a passage of the same document with the sentence that answers.
        """
        answer = self.answer(place)
        now = self.now

        if answer is None or answer.says_the_same(now):
            return answer is not None
        if answer.source is None or now.source is None:
            return False

        is_there = _word_text(self.key) in _word_text(answer.source.text)
        return is_there and answer.source.document == now.source.document

    def find_boundary(self) -> tuple[int, int | None]:
        """The oldest place with the answer of now, and the place before it; None where every kept
        snapshot has it. Steps back double, then halve: an answer that came, went and came back
        between two steps is taken for one that stayed.
        """
        same = len(self.kept_moves) - 1
        step = 1
        differing = -1

        while same > 0:
            place = max(0, same - step)
            if not self.is_same(place):
                differing = place
                break

            same = place
            step = 2 * step

        if differing < 0:
            return same, None

        while same - differing > 1:
            middle = (same + differing) // 2
            if self.is_same(middle):
                same = middle
            else:
                differing = middle

        return same, differing


def _explain_asked(
    walk: _Walk,
    moves: Sequence[Move],
    former: int,
    first: int,
) -> Report:
    """The change between two snapshots that were asked."""
    older = walk.kept_moves[former]
    newer = walk.kept_moves[first]
    old = walk.answer(former)
    new = walk.answer(first)
    between = list(moves[moves.index(older) + 1 : moves.index(newer) + 1])
    causes: list[dict[str, str]] = []
    old_text: tuple[str, ...] = ()

    if old is not None and new is not None:
        old_text = old.text
        root = root_of(walk.home)
        with (
            closing(open_folder(root / older.snapshot)) as old_view,
            closing(open_folder(root / newer.snapshot)) as new_view,
        ):
            changes = GraphChanges(old_view, new_view)
            asker = Asker(walk.question, walk.tools, old_view, new_view)
            causes = changes.find_causes(asker, old, new)

    names = []
    for cause in causes:
        if cause["kind"] == "document":
            names.append(cause["subject"])

    hit = _last_change(walk, between, names)
    move = hit[0] if hit is not None else newer
    return {
        "certainty": "asked",
        "night": _night(move),
        "not_before": older.day if hit is None and len(between) > 1 else move.day,
        "before": _excerpt(old_text),
        "causes": causes,
        "document": None if hit is None else _describe_change(walk, hit[1], old_text),
        "settings_of_night": _settings_between(moves, move),
    }


def _last_change(
    walk: _Walk,
    moves: Sequence[Move],
    names: Sequence[str],
) -> tuple[Move, DocumentChange] | None:
    """The newest move that brought the answer's sentence into one of the documents, else the newest
    that changed one of them.
    """
    changed = []
    for move in reversed(moves):
        rows = {row.name: row for row in walk.changes(move) if row.name in names}
        changed += [(move, rows[name]) for name in names if name in rows]

    for move, row in changed:
        if _brought(row, walk.key):
            return move, row

    return changed[0] if changed else None


def _word_text(text: str) -> str:
    """The words of a text with single blanks, without marks and markup."""
    return f" {' '.join(words(text))} "


def _brought(row: DocumentChange, sentence: str) -> bool:
    """Whether a change brought a sentence."""
    words = _word_text(sentence)
    return bool(words.strip()) and any(words in _word_text(came) for came in row.came)


def _explain_by_texts(
    walk: _Walk,
    moves: Sequence[Move],
    oldest: Move,
) -> Report:
    """Where every kept snapshot has the answer: the night that brought its sentence."""
    source = walk.now.source
    older_moves = list(moves[: moves.index(oldest) + 1])
    known = [move for move in older_moves if move.has_texts]
    report: Report = {
        "certainty": "unknown",
        "night": _night(known[0] if known and source is not None else oldest),
        "not_before": "",
        "before": "",
        "causes": [],
        "document": None,
        "settings_of_night": [],
    }

    if source is None:
        return report

    hit = _walk_back(walk, older_moves, source)
    if hit is None:
        return report

    move, row, certainty = hit
    described = _describe_change(walk, row)
    sentence = f"{row.name} was {row.change}"
    return report | {
        "certainty": certainty,
        "night": _night(move),
        "not_before": move.day,
        "before": described["before"],
        "causes": [
            {
                "kind": "document",
                "subject": row.name,
                "sentence": sentence,
            }
        ],
        "document": described,
        "settings_of_night": _settings_between(moves, move),
    }


def _walk_back(
    walk: _Walk,
    moves: Sequence[Move],
    source: CitedPassage,
) -> tuple[Move, DocumentChange, str] | None:
    """The newest change that brought the answer's sentence, or took away one that fits better."""
    document = source.document_id
    for move in reversed(moves):
        rows = walk.changes(move)
        brought = []
        for row in rows:
            if row.document == document and _brought(row, walk.key):
                brought.append(row)

        if brought:
            former = former_of(brought[0], rows)
            if former is None:
                return move, brought[0], "text"

            document = former.document
            continue

        former_row = _better_gone(walk, [row for row in rows if row.document != document])
        if former_row is not None:
            return move, former_row, "likely"

    return None


def _better_gone(walk: _Walk, rows: Sequence[DocumentChange]) -> DocumentChange | None:
    """The change that took away a sentence which has every word of the question that the answer
    has, and more of them or is nearer to it; the nearest of these.
    """
    stems = _stems(walk.question)
    answered = stems & _stems(walk.key)
    came = set(chain.from_iterable(row.came for row in rows))

    texts = []
    for row in rows:
        gone = [sentence for sentence in row.gone if sentence not in came]  # it only moved
        texts += [(sentence, row) for sentence in gone if answered <= stems & _stems(sentence)]

    if walk.tools.embedder is None or not answered or not texts:
        return None

    vectors = walk.tools.embedder.embed(
        [walk.question, walk.key, *(sentence for sentence, _ in texts)]
    )
    nearness = vectors[1:] @ vectors[0]
    best = int(np.argmax(nearness[1:]))
    sentence, row = texts[best]
    has_more = len(stems & _stems(sentence)) > len(answered)

    if not has_more and nearness[1 + best] < nearness[0] + _NEARER:
        return None

    return replace(row, gone=(sentence,))


def _stems(sentence: str) -> set[str]:
    return set(map(stem, content_words(sentence)))


def _date_sentences(walk: _Walk, moves: Sequence[Move]) -> list[dict[str, str]]:
    """The sentences of the answer, each with the day that brought it into its document; an empty
    day where that was before everything that is kept.
    """
    if walk.now.source is None:
        document = ""
    else:
        document = walk.now.source.document_id

    days: dict[str, str] = {}
    for move in reversed(moves):
        rows = walk.changes(move)
        for row in [row for row in rows if row.document == document]:
            former = former_of(row, rows)
            if former is not None:
                document = former.document
                continue

            for part in walk.parts:
                if part not in days and _brought(row, part):
                    days[part] = move.day

    return [
        {
            "text": _excerpt((part,)),
            "day": days.get(part, ""),
        }
        for part in walk.parts
    ]


def _names_of_source(walk: _Walk, moves: Sequence[Move]) -> list[dict[str, str]]:
    """The names that the answer's document had before, newest first, with the last day of each."""
    if walk.now.source is None:
        document = ""
    else:
        document = walk.now.source.document_id

    names = []
    for move in reversed(moves):
        rows = walk.changes(move)
        for row in [row for row in rows if row.document == document]:
            former = former_of(row, rows)
            if former is not None:
                document = former.document
                names.append(
                    {
                        "name": former.name,
                        "until": move.day,
                    }
                )

    return names


def _describe_change(
    walk: _Walk,
    row: DocumentChange,
    old_answer: Sequence[str] = (),
) -> Report:
    """A document's change with the sentence that answers and the one that it replaced."""
    came = [text for text in row.came if _word_text(walk.key) in _word_text(text)]
    if row.change == "removed":
        shown = walk.key
    else:
        shown = next(iter(came or row.came), "")

    old_text = _word_text(" ".join(old_answer))
    former = walk.nearest([text for text in row.gone if _word_text(text) in old_text])
    if not former and row.change == "changed":
        former = max(row.gone, key=lambda text: _share(text, shown), default="")
        former = former if _share(former, shown) >= _ALIKE else ""

    if not former and not came:
        former = walk.nearest(row.gone)

    return {
        "id": row.document,
        "name": row.name,
        "change": row.change,
        "before": _excerpt((former,)),
        "now": _excerpt((shown,)),
    }


def _find_commit(sources: Sequence[SourceSpec], document: Report) -> Report | None:
    """The commit behind a document's change, where its folder is in git."""
    for spec in sources:
        root = Path(spec.path).resolve()
        folder = root if root.is_dir() else root.parent
        path = folder / document["name"]
        commit = None

        if path.resolve().is_relative_to(folder) and path.parent.is_dir():
            commit = blame_sentence(path, document["now"])

        if commit is not None:
            subject = commit.message.partition("\n")[0]
            at = iso(commit.at)
            return {
                "commit": commit.id,
                "at": at,
                "author": commit.author,
                "subject": subject,
            }

    return None


def _share(first: str, second: str) -> float:
    return SequenceMatcher(
        None,
        first.split(),
        second.split(),
        autojunk=False,
    ).ratio()


def _night(move: Move) -> dict[str, str]:
    return {
        "at": move.at,
        "day": move.day,
        "snapshot": move.snapshot,
        "act": move.act,
    }


def _settings_between(moves: Sequence[Move], move: Move) -> list[str]:
    """The settings that were changed in the night of a move."""
    place = moves.index(move)
    if not place:
        return []

    old = moves[place - 1].settings
    new = move.settings
    return changed_settings(old, new) if old and new else []


def _changed_setting(walk: _Walk, moves: Sequence[Move]) -> Report | None:
    """The newest change of the settings of questions without which this graph would answer
    otherwise.
    """
    with closing(open_folder(root_of(walk.home) / walk.kept_moves[-1].snapshot)) as view:
        for older, newer in reversed(list(pairwise(moves))):
            if not older.settings or not newer.settings:
                continue

            changes = changed_settings(_of_questions(older.settings), _of_questions(newer.settings))
            if changes and not walk.ask(view, _tools_of(walk.tools, older)).says_the_same(walk.now):
                return {
                    "night": _night(newer),
                    "changes": changes,
                }

    return None


def _of_questions(settings: Mapping[str, Any]) -> JsonObject:
    return {name: settings.get(name) for name in ("hirag_pathrag", "hipporag")}


def _tools_of(tools: Tools, move: Move) -> Tools:
    """The tools with the settings of a night."""
    settings = move.settings or {}
    return replace(
        tools,
        rules=HiragPathrag.model_validate(settings["hirag_pathrag"]),
        walk=HippoSettings.model_validate(settings["hipporag"]),
    )


def _excerpt(sentences: Sequence[str]) -> str:
    return plain(" ".join(sentences))[:_LONGEST]
