"""Remembered states among passages and paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hades.ports.graph import CHUNK, DocumentFilter, EdgeFacts, Kind, NodeFacts
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
) -> Iterator[Path]:
    """Paths from a state over the longest names in it, as many as may be read.

    Each goes on to the best passage of the answer that names the entity, else to any text, else to what is heaviest.
    """
    named, spans = view.match_names(hit.text), dict[int, tuple[int, int]]()
    for place in np.lexsort((named.starts, named.starts - named.ends)).tolist():
        spans.setdefault(int(named.numbers[place]), (int(named.starts[place]), int(named.ends[place])))
    entities = list(spans)[:_NAMES]
    if not entities or view.turn.expired():
        return
    follow = view.expand(np.array(entities, np.int64), direction=ANY, fanout=_FANOUT, mask=question.mask)
    place_of = {one.id: place for place, one in enumerate(shown.passages)}
    targets = zip(view.ids(follow.target), view.kinds(follow.target).tolist(), strict=True)
    order = [(place_of.get(one, len(place_of)), kind != CHUNK) for one, kind in targets]
    for row, entity in enumerate(entities):
        onward = sorted(np.flatnonzero(follow.row == row).tolist(), key=order.__getitem__)[:1]
        numbers = [entity, *follow.target[onward].tolist()]
        nodes, edges = view.nodes(np.array(numbers, np.int64)), view.edges(follow.edge[onward])
        if len(nodes) < len(numbers) or len(edges) < len(onward):
            continue
        start, end = spans[entity]
        state = NodeFacts(hit.id, Kind.CHUNK, hit.topic, MEMORY, document=hit.id, span=(0, len(hit.text)))
        names = EdgeFacts(
            f"{hit.id}#{start}", hit.id, nodes[0].id, "mentions", 1.0, document=hit.id, span=(start, end),
            snippet=hit.text[start:end], document_id=hit.id,
        )  # fmt: skip
        outbound = (True, *follow.outbound[onward].tolist())
        walk = FoundPath((-1, *numbers), (-1,) * len(numbers), outbound, 1.0, origin=MEMORY)
        yield write_path(counter, 1, walk, [state, *nodes], [names, *edges])


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
    near = [one.score for one in placed[max(0, place - 1) : place + 1]]
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
