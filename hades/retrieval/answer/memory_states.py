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
from schemas.plan import Reason

# Paths from remembered states into the graph: a state and a document that name one thing are joined
# by that entity. Memory keeps no entities of its own. The names in a state are looked up among the
# entities of the graph, so what a decision is about and what the documents speak of is one node,
# and a path leads on to the text or the code.
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
    """The answer's parts with a path from each of the first states to what it names; at most `most`
    paths in all.

    They come first where a state is the first passage, else after the other paths.
    """
    state_paths: list[Path] = []
    for hit in hits[:_STATES] if most else ():
        state_paths += _paths_from(view, counter, question, hit, shown)

    if not state_paths:
        return shown

    leads = bool(shown.passages) and MEMORY in shown.passages[0].origins
    scores = [path.score for path in shown.paths] or [1.0]
    score = max(scores) if leads else scores[-1]

    scored = []
    for path in state_paths:
        scored.append(path.model_copy(update={"score": score}))

    if leads:
        joined = [*scored, *shown.paths]
    else:
        joined = [*shown.paths, *scored]

    ranked = tuple(
        path.model_copy(update={"rank": rank}) for rank, path in enumerate(joined[:most], 1)
    )
    added = sum(len(path.edges) for path in ranked) - sum(len(path.edges) for path in shown.paths)
    return replace(
        shown,
        paths=ranked,
        facts=shown.facts + added,
        cited=shown.cited + max(0, added),
    )


def _paths_from(
    view: MeteredView,
    counter: TokenCounter,
    question: Question,
    hit: MemoryHit,
    shown: AnswerParts,
) -> Iterator[Path]:
    """Paths from a state over the longest names in it, as many as may be read.

    Each goes on to the best passage of the answer that names the entity, else to any text, else to
    what is heaviest.
    """
    matches = view.match_names(hit.text)
    longest_first = np.lexsort((matches.starts, matches.starts - matches.ends))
    rows = np.column_stack([matches.numbers, matches.starts, matches.ends])[longest_first]

    spans: dict[int, tuple[int, int]] = {}
    for number, start, end in rows.tolist():
        spans.setdefault(number, (start, end))

    entities = list(spans)[:_NAMES]
    if not entities or view.turn.expired():
        return

    follow = view.expand(
        np.array(entities, np.int64),
        direction=ANY,
        fanout=_FANOUT,
        mask=question.mask,
    )
    place_of = {}
    for place, passage in enumerate(shown.passages):
        place_of[passage.id] = place

    targets = zip(view.ids(follow.target), view.kinds(follow.target).tolist(), strict=True)
    order = []
    for node_id, kind in targets:
        order.append((place_of.get(node_id, len(place_of)), kind != CHUNK))

    for row, entity in enumerate(entities):
        onward = sorted(
            np.flatnonzero(follow.row == row).tolist(),
            key=order.__getitem__,
        )[:1]
        numbers = [entity, *follow.target[onward].tolist()]
        nodes = view.nodes(np.array(numbers, np.int64))
        edges = view.edges(follow.edge[onward])

        if len(nodes) < len(numbers) or len(edges) < len(onward):
            continue

        start, end = spans[entity]
        state = NodeFacts(
            hit.id,
            Kind.CHUNK,
            hit.topic,
            MEMORY,
            document=hit.id,
            span=(0, len(hit.text)),
        )
        mention = EdgeFacts(
            f"{hit.id}#{start}",
            hit.id,
            nodes[0].id,
            "mentions",
            1.0,
            document=hit.id,
            span=(start, end),
            snippet=hit.text[start:end],
            document_id=hit.id,
        )
        outbound = (True, *follow.outbound[onward].tolist())
        walk = FoundPath(
            (-1, *numbers),
            (-1,) * len(numbers),
            outbound,
            1.0,
            origin=MEMORY,
        )
        yield write_path(
            counter,
            1,
            walk,
            [state, *nodes],
            [mention, *edges],
        )


# Remembered states among the passages of an answer: which of them belong there, and at which rank.
# Passages of different recipes carry scores of different scales, so a state is placed by what both
# can be measured by: the share of the question's content words that a text speaks. It stands before
# the first passage that speaks fewer.
_PASSAGE_REFERENCE = re.compile(r"(leads to passage )(\d+)")
_MOST = 6  # states in one answer
_WITHIN_DOMAIN = 100  # states that are looked at where a question is limited to a domain
_SPOKEN = 0.5  # share of the question's content words from which a state is about it
_NEAR = 0.5  # cosine from which a state is about the question whatever words it uses


def recall_states(
    view: MeteredView,
    search: MemorySearch | None,
    question: Question,
) -> list[MemoryHit]:
    """The states that a question is about; each counts as a read."""
    if search is None:
        return []

    limit = _MOST if view.only is None else _WITHIN_DOMAIN
    hits = search.search(
        question.text,
        question.vector,
        question.model,
        question.mask,
        limit,
    )
    if search.is_away():
        view.turn.because(Reason.STORE_UNAVAILABLE)
    if view.only is not None:
        hits = [hit for hit in hits if _is_inside(hit, view.only)][:_MOST]
    if not hits:
        return []

    with view.turn.stage("memory") as stage:
        words = _stems(question.text)
        matches = []
        for hit in hits:
            if _share(words, hit.text, hit.topic) >= _SPOKEN or (hit.cosine or 0.0) >= _NEAR:
                matches.append(hit)

        stage.taken, stage.given = len(hits), view.turn.grant_reads(len(matches))
        stage.coverage = float(bool(matches))
        recalled = matches[: stage.given]
        search.note_shown([hit.id for hit in recalled])
        return recalled


def place_states(
    shown: AnswerParts,
    question: str,
    hits: Sequence[MemoryHit],
) -> AnswerParts:
    """The answer's parts with remembered states among the passages; passages keep their order and
    their scores.
    """
    if not hits:
        return shown

    words = _stems(question)
    placed: list[CitedPassage] = list(shown.passages)
    for hit in hits:
        share = _share(words, hit.text, hit.topic)
        place = 0
        while place < len(placed) and not _speaks_less(placed[place], words, share):
            place += 1

        placed.insert(place, _cite(hit, placed, place))

    ranked = tuple(
        passage.model_copy(update={"rank": rank}) for rank, passage in enumerate(placed, 1)
    )
    moved = {}
    for old, new in zip(placed, ranked, strict=True):
        if MEMORY not in old.origins:
            moved[old.rank] = new.rank

    def renumber(reference: re.Match[str]) -> str:
        return f"{reference[1]}{moved.get(int(reference[2]), int(reference[2]))}"

    paths = tuple(
        path.model_copy(update={"why": _PASSAGE_REFERENCE.sub(renumber, path.why)})
        for path in shown.paths
    )
    return replace(
        shown,
        paths=paths,
        passages=ranked,
        facts=shown.facts + len(hits),
        cited=shown.cited + len(hits),
    )


def _speaks_less(
    passage: CitedPassage,
    words: frozenset[str],
    share: float,
) -> bool:
    is_state = MEMORY in passage.origins
    return not is_state and _share(words, passage.text, passage.title) < share


def _is_inside(hit: MemoryHit, only: DocumentFilter) -> bool:
    """States belong to the domain `memory` and to that of the first part of their topic, and to no
    document.
    """
    only = replace(only, as_of=None)  # memory was asked at that moment
    if only.is_open:
        return hit.id not in only.without
    if only.reads_documents or only.domain is None:
        return False

    return only.domain.casefold() in (MEMORY, hit.topic.partition("/")[0].casefold())


def _cite(
    hit: MemoryHit,
    placed: Sequence[CitedPassage],
    place: int,
) -> CitedPassage:
    near = []
    for passage in placed[max(0, place - 1) : place + 1]:
        near.append(passage.score)

    score = sum(near) / len(near) if near else hit.similarity
    return CitedPassage(
        rank=place + 1,
        id=hit.id,
        document=hit.id,
        title=f"{hit.topic}, remembered since {hit.since}",
        text=hit.text,
        score=score,
        origins=(MEMORY,),
        tiers={MEMORY: hit.similarity},
        document_id=hit.id,
        span=(0, len(hit.text)),
    )


def _share(words: frozenset[str], *texts: str) -> float:
    """The share of the question's content words that the texts speak."""
    if words:
        return len(words & _stems(" ".join(texts))) / len(words)
    return 0.0


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text.replace("_", " ").replace("/", " ")))
