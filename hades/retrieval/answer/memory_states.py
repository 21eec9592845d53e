"""Remembered states among passages and paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hades.ports.graph import KINDS, DocumentFilter, EdgeFacts, Kind, NodeFacts, Numbers
from hades.ports.services import MemoryHit, MemorySearch
from hades.retrieval.answer.assemble import AnswerParts, write_path
from hades.retrieval.answer.path_text import TokenCounter
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPath, Question
from hades.retrieval.core.words import ANY, content_words, stem
from schemas.answer import CitedPassage, Path

# Paths from remembered states into the graph: a state and a document that name one thing are joined by that entity.
# Memory keeps no entities of its own. The names in a state are looked up among the entities of the graph, so what a
# decision is about and what the documents speak of is one node, and a path leads on to the text or the code.


MEMORY = "memory"
_STATES = 2  # whose names are followed
_NAMES = 2  # of one state
_FANOUT = 16
_CHUNK = KINDS.index(Kind.CHUNK)


def add_memory_paths(
    view: MeteredView,
    counter: TokenCounter,
    question: Question,
    hits: Sequence[MemoryHit],
    shown: AnswerParts,
    most: int,
) -> AnswerParts:
    """The answer's parts with a path from each of the first states to what it names; at most `most` paths in all.

    They come first where a state is the first passage, else after the other paths.
    """
    found = [path for hit in hits[:_STATES] for path in _paths_of(view, counter, question, hit, shown)] if most else []
    if not found:
        return shown
    leads = bool(shown.passages) and MEMORY in shown.passages[0].origins
    scores = [path.score for path in shown.paths] or [1.0]
    score = max(scores) if leads else scores[-1]
    ours = [path.model_copy(update={"score": score}) for path in found]
    joined = ([*ours, *shown.paths] if leads else [*shown.paths, *ours])[:most]
    ranked = tuple(path.model_copy(update={"rank": rank}) for rank, path in enumerate(joined, 1))
    added = sum(len(path.edges) for path in ranked) - sum(len(path.edges) for path in shown.paths)
    return replace(shown, paths=ranked, facts=shown.facts + added, cited=shown.cited + max(0, added))


def _paths_of(
    view: MeteredView, counter: TokenCounter, question: Question, hit: MemoryHit, shown: AnswerParts
) -> list[Path]:
    named = view.match_names(hit.text)
    longest_first = sorted(
        zip((named.ends - named.starts).tolist(), named.numbers.tolist(), named.starts.tolist(), strict=True),
        key=lambda one: (-one[0], one[2]),
    )
    spans = {number: (start, start + length) for length, number, start in reversed(longest_first)}
    entities = list(dict.fromkeys(number for _, number, _ in longest_first))[:_NAMES]
    if not entities or view.turn.expired():
        return []
    follow = view.expand(np.array(entities, np.int64), direction=ANY, fanout=_FANOUT, mask=question.mask)
    place_of = {one.id: place for place, one in enumerate(shown.passages)}
    paths = []
    for row, entity in enumerate(entities):
        ours = np.flatnonzero(follow.row == row)
        best = _choose(view, follow.target[ours], place_of)
        path = _write(
            view, counter, hit, entity, spans[entity],
            None if best is None else (int(follow.target[ours[best]]), int(follow.edge[ours[best]]),
                                       bool(follow.outbound[ours[best]])),
        )  # fmt: skip
        paths += [] if path is None else [path]
    return paths


def _choose(view: MeteredView, targets: Numbers, place_of: dict[str, int]) -> int | None:
    """Where to go on from an entity: to the best passage of the answer that names it, else to any text, else on."""
    if not len(targets):
        return None
    ids, kinds = view.ids(targets), view.kinds(targets)
    order = [
        (place_of.get(one, len(place_of)), int(kind != _CHUNK), place)
        for place, (one, kind) in enumerate(zip(ids, kinds.tolist(), strict=True))
    ]
    return min(order)[2]


def _write(
    view: MeteredView,
    counter: TokenCounter,
    hit: MemoryHit,
    entity: int,
    span: tuple[int, int],
    onward: tuple[int, int, bool] | None,
) -> Path | None:
    """The path in words; None where its facts may not be read any more."""
    numbers = [entity] if onward is None else [entity, onward[0]]
    nodes = view.nodes(np.array(numbers, np.int64))
    edges = view.edges(np.array([] if onward is None else [onward[1]], np.int64))
    if len(nodes) < len(numbers) or len(edges) < len(numbers) - 1:
        return None
    state = NodeFacts(hit.id, Kind.CHUNK, hit.topic, MEMORY, document=hit.id, span=(0, len(hit.text)))
    names = EdgeFacts(
        f"{hit.id}#{span[0]}", hit.id, nodes[0].id, "mentions", 1.0, document=hit.id, span=span,
        snippet=hit.text[span[0] : span[1]], document_id=hit.id,
    )  # fmt: skip
    walk = FoundPath(
        (-1, *numbers), (-1,) * len(numbers), (True, *([] if onward is None else [onward[2]])), 1.0, origin=MEMORY
    )
    return write_path(counter, 1, walk, [state, *nodes], [names, *edges])


# Remembered states among the passages of an answer: which of them belong there, and at which rank. Passages of
# different recipes carry scores of different scales, so a state is placed by what both can be measured by: the
# share of the question's content words that a text speaks. It stands before the first passage that speaks fewer.


_PASSAGE = re.compile(r"(leads to passage )(\d+)")
_MOST = 6  # states in one answer
_WITHIN_DOMAIN = 100  # states that are looked at where a question is limited to a domain
_SPOKEN = 0.5  # share of the question's content words from which a state is about it
_NEAR = 0.5  # cosine from which a state is about the question whatever words it uses


def recall_states(view: MeteredView, search: MemorySearch | None, question: Question) -> list[MemoryHit]:
    """The states that a question is about; each counts as a read."""
    if search is None:
        return []
    limit = _MOST if view.only is None else _WITHIN_DOMAIN
    found = search.search(question.text, question.vector, question.model, question.mask, limit)
    if view.only is not None:
        found = [one for one in found if _is_inside(one, view.only)][:_MOST]
    if not found:
        return []
    with view.turn.stage("memory") as stage:
        words = _stems(question.text)
        kept = [one for one in found if _share(words, one.text, one.topic) >= _SPOKEN or (one.cosine or 0.0) >= _NEAR]
        stage.taken, stage.given = len(found), view.turn.reads(len(kept))
        stage.coverage = float(bool(kept))
        search.note_shown([one.id for one in kept[: stage.given]])
        return kept[: stage.given]


def place_states(shown: AnswerParts, question: str, hits: Sequence[MemoryHit]) -> AnswerParts:
    """The answer's parts with remembered states among the passages; passages keep their order and their scores."""
    if not hits:
        return shown
    words = _stems(question)
    placed: list[CitedPassage] = list(shown.passages)
    for hit in hits:
        share = _share(words, hit.text, hit.topic)
        fewer = (MEMORY not in one.origins and _share(words, one.text, one.title) < share for one in placed)
        place = next((at for at, is_before in enumerate(fewer) if is_before), len(placed))
        placed.insert(place, _cite(hit, placed, place))
    ranked = tuple(one.model_copy(update={"rank": rank}) for rank, one in enumerate(placed, 1))
    moved = {old.rank: new.rank for old, new in zip(placed, ranked, strict=True) if MEMORY not in old.origins}

    def renumber(said: re.Match[str]) -> str:
        return f"{said[1]}{moved.get(int(said[2]), int(said[2]))}"

    paths = tuple(one.model_copy(update={"why": _PASSAGE.sub(renumber, one.why)}) for one in shown.paths)
    return replace(shown, paths=paths, passages=ranked, facts=shown.facts + len(hits), cited=shown.cited + len(hits))


def _is_inside(hit: MemoryHit, only: DocumentFilter) -> bool:
    """States belong to the domain `memory` and to that of the first part of their topic, and to no document."""
    if only.is_open:
        return hit.id not in only.without
    if only.reads_documents or only.domain is None:
        return False
    return only.domain.casefold() in (MEMORY, hit.topic.partition("/")[0].casefold())


def _cite(hit: MemoryHit, placed: Sequence[CitedPassage], place: int) -> CitedPassage:
    before = placed[place - 1].score if place else None
    after = placed[place].score if place < len(placed) else None
    near = [one for one in (before, after) if one is not None]
    return CitedPassage(
        rank=place + 1,
        id=hit.id,
        document=hit.id,
        title=f"{hit.topic}, remembered since {hit.since}",
        text=hit.text,
        score=sum(near) / len(near) if near else hit.similarity,
        origins=(MEMORY,),
        tiers={MEMORY: hit.similarity},
        document_id=hit.id,
        span=(0, len(hit.text)),
    )


def _share(words: frozenset[str], *texts: str) -> float:
    """The share of the question's content words that the texts speak."""
    return len(words & _stems(" ".join(texts))) / len(words) if words else 0.0


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text.replace("_", " ").replace("/", " ")))
