"""Code hits joined with passages."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from pathlib import PurePosixPath
from weakref import WeakKeyDictionary

import numpy as np

from hades.ports.graph import CHUNK, KINDS, Kind, Numbers, Passage
from hades.retrieval.code.index import CodeIndex, CodeUnit, Commit, History
from hades.retrieval.code.search import CodeHits, search_code
from hades.retrieval.code.words import code_terms
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FILE, PASSAGE, FoundPassage, FoundPath, Question
from hades.retrieval.core.words import IN, MENTIONS, OUT, Floats, Relevance
from hades.snapshot.view import GraphView
from hades.text.code_questions import read_code_question
from schemas.answer import CitedPassage, RankedItem
from schemas.nodes import CHANGED_FILES, CODE_KINDS

# Passages of code for a question: the index of a snapshot's files, and how its hits join what the
# text search found. The index is made once for each open view and kept as long as the view; making
# it is not part of a turn.
CODE = "code"
_TOUCHED = "touched"
_CODE_SHARE = 0.5  # of the chunks: from here on a workspace is what the graph is about
_SOME_CODE = (
    0.1  # below it the code beside a manual is a few helper scripts, which no question is about
)
_MANUAL = 0.1  # share of the chunks from which on pages beside code are a manual
_ASKS_CODE = re.compile(
    r"\bwhere (?:is|are)\b.*(?:ed|built|made|set|sent|written|code)\W*$"
    r"|\bwhich (?:file|function|class|method|module|test)"
    r"|\bimplement(?:s|ed|ation)?\b|\bsource code\b|\bcode(?: (?:that|for|of|which)\b|\W*$)",
    re.IGNORECASE,
)
_COMPARED = 6  # passages of either kind that are read to order a plain question's answer
_CLEARLY_LESS = 0.4  # of what the question says, rare words counting more
RANKED = 50  # files or symbols of a ranking


@dataclass(frozen=True, eq=False)
class SnapshotCode:
    """The index of a snapshot; `nodes[row]` is the chunk of a unit."""

    index: CodeIndex
    nodes: Numbers
    share: float
    names: frozenset[str]  # of symbols, alone and behind their class or module, and of files


_lock = threading.Lock()
_indexes: WeakKeyDictionary[GraphView, SnapshotCode | None] = WeakKeyDictionary()


def code_of(view: GraphView) -> SnapshotCode | None:
    """The index of a snapshot that holds files of a workspace; None where it holds none."""
    with _lock:
        if view not in _indexes:
            code = _indexes[view] = _read(view)
            if code is not None:
                search_code(
                    code.index, code.index.files[0], 1
                )  # builds what an index builds when first asked

        return _indexes[view]


def find_code(
    view: MeteredView,
    code: SnapshotCode,
    question: Question,
    limit: int,
) -> CodeHits:
    """Search, in a stage of its own."""
    with view.turn.stage("code") as stage:
        cosines = None
        if question.vector is not None:
            similarities = view.cosines(
                question.vector,
                code.nodes,
                model=question.model,
            )
            cosines = similarities.astype(np.float64)

        if view.only is None:
            hits = search_code(
                code.index,
                question.text,
                limit,
                cosines,
            )
        else:
            every_hit = search_code(
                code.index,
                question.text,
                len(code.index.units),
                cosines,
            )
            hits = _hits_inside(view, code, every_hit, limit)

        stage.taken = len(code.index.units)
        stage.given = len(hits.units)
        stage.coverage = float(bool(hits.units))

    return hits


def _hits_inside(
    view: MeteredView,
    code: SnapshotCode,
    hits: CodeHits,
    limit: int,
) -> CodeHits:
    """The hits that the turn is limited to: units, and the files and symbols that have some."""
    inside = set(np.flatnonzero(view.is_inside(code.nodes)).tolist())
    units = [code.index.units[row] for row in inside]
    files = {unit.path for unit in units}
    symbols = {f"{unit.path}:{unit.symbol}" for unit in units}
    files_inside = [hit for hit in hits.files if hit.id in files]
    symbols_inside = [hit for hit in hits.symbols if hit.id in symbols]
    units_inside = [hit for hit in hits.units if hit[0] in inside]
    return CodeHits(
        tuple(files_inside[:limit]),
        tuple(symbols_inside[:limit]),
        tuple(units_inside[:limit]),
    )


def code_leads(code: SnapshotCode, text: str) -> bool:
    """Whether code stands first: the graph is about code, or has some and the question says what
    only code has.

    Beside a manual one line leads to code only where it names some of this code or asks where code
    is.
    """
    question = read_code_question(text)
    is_line = not (question.frames or question.code or question.prose.strip())

    if is_line and code.share <= 1.0 - _MANUAL:
        # A name in code marks is that of a symbol, or a dotted name or a path ends in one of this
        # code.
        endings = []
        for name in question.dotted:
            endings.append(".".join(name.split(".")[-2:]))

        names_code = not code.names.isdisjoint([*question.inline, *question.paths, *endings])
        return code.share >= _SOME_CODE and (names_code or _ASKS_CODE.search(text) is not None)

    return code.share >= _CODE_SHARE or (question.has_evidence and code.share >= _SOME_CODE)


def join_code(
    view: MeteredView,
    code: SnapshotCode,
    hits: CodeHits,
    text: str,
    text_passages: Sequence[FoundPassage],
    limit: int,
) -> list[FoundPassage]:
    """Code first where the graph is about code or the question is; what else was found follows.

    For a plain sentence a passage of the other kind stands before those that speak clearly less of
    the question: a changelog may answer what no function does. The best passage of a manual keeps
    its place. Scores fall with rank.
    """
    code_passages = []
    for row, score in hits.units:
        code_passages.append(
            FoundPassage(
                int(code.nodes[row]),
                score,
                {CODE: score},
            )
        )

    question = read_code_question(text)
    is_code_first = code_leads(code, text)
    first: Sequence[FoundPassage] = text_passages
    second: Sequence[FoundPassage] = code_passages

    if is_code_first:
        first, second = second, first

    # Each search has a scale of its own.
    lowest = min((passage.score for passage in first), default=1.0)
    highest = max((passage.score for passage in second), default=lowest)
    if lowest > 0.0:
        scale = lowest / max(lowest, highest)
    else:
        scale = 0.0

    scaled = [replace(passage, score=scale * passage.score) for passage in second]
    joined: dict[int, FoundPassage] = {}
    for passage in (*first, *scaled):
        leader = joined.setdefault(passage.node, passage)
        if leader is not passage:
            joined[passage.node] = replace(leader, tiers={**passage.tiers, **leader.tiers})

    ranked = list(joined.values())
    is_plain = not (question.has_evidence or question.prose.strip())
    if is_plain:
        rows_of_code = []
        for row, unit in enumerate(code.index.units):
            if unit.kind in CODE_KINDS:
                rows_of_code.append(row)

        is_code = set(code.nodes[rows_of_code].tolist())
        behind = {passage.node for passage in second if (passage.node in is_code) != is_code_first}
        ranked = _move_up(
            view,
            code.index,
            text,
            ranked,
            behind,
            first=0 if is_code_first else 1,
        )

    scores = [passage.score for passage in reversed(ranked[:limit])]
    falling = list(accumulate(scores, max))[::-1]
    return [replace(passage, score=score) for passage, score in zip(ranked, falling, strict=False)]


def _move_up(
    view: MeteredView,
    index: CodeIndex,
    text: str,
    ranked: list[FoundPassage],
    behind: set[int],
    first: int,
) -> list[FoundPassage]:
    """Passages of `behind`, the best few, before the first from `first` on that speaks clearly less
    of the question.
    """
    leaders = [passage for passage in ranked if passage.node not in behind][:_COMPARED]
    risers = [passage for passage in ranked if passage.node in behind][:_COMPARED]

    if not leaders or not risers:
        return ranked

    nodes = [passage.node for passage in (*leaders, *risers)]
    rarities = _rarities(index, text)
    shares = dict.fromkeys(nodes, 0.0)

    for node, passage in zip(nodes, view.passages(np.array(nodes, np.int64)), strict=False):
        terms = set(code_terms(f"{passage.title} {passage.text}"))
        shares[node] = sum(rarities[term] for term in sorted(rarities.keys() & terms))

    placed = list(leaders)
    margin = _CLEARLY_LESS * sum(rarities.values())
    for riser in risers:
        enough = shares[riser.node] - margin
        place = first
        while place < len(placed) and shares[placed[place].node] > enough:
            place += 1

        placed.insert(place, riser)

    moved = {passage.node for passage in placed}
    return [*placed, *(passage for passage in ranked if passage.node not in moved)]


def _rarities(index: CodeIndex, text: str) -> dict[str, float]:
    """The words of a question, each with how rare it is in the code; one that the code lacks counts
    as the rarest.
    """
    terms = index.words.terms
    rarity = index.unit_postings.rarity
    rarities = dict.fromkeys(code_terms(text), float(rarity.max()) if len(rarity) else 1.0)

    for word in rarities.keys() & terms.keys():
        if terms[word] < len(rarity):
            rarities[word] = float(rarity[terms[word]])

    return rarities


def rank_level(
    level: str,
    hits: CodeHits | None,
    passages: Sequence[CitedPassage],
) -> tuple[RankedItem, ...]:
    """Files or symbols, best first; where code was not searched, those of the passages."""
    if level == PASSAGE:
        return ()

    best: dict[str, float] = {}
    if hits is not None:
        best = {}
        for hit in hits.files if level == FILE else hits.symbols:
            best[hit.id] = hit.score
    else:
        for passage in passages:
            name = passage.path or passage.document
            if level == FILE:
                best.setdefault(name, passage.score)
            elif passage.symbol:
                best.setdefault(f"{name}:{passage.symbol}", passage.score)

    return tuple(
        RankedItem(
            rank=rank,
            id=name,
            score=score,
        )
        for rank, (name, score) in enumerate(best.items(), 1)
    )


def _read(view: GraphView) -> SnapshotCode | None:
    chunks = view.file_chunks()
    pieces = zip(chunks.tolist(), view.passages(chunks), strict=True)
    passages = {node: passage for node, passage in pieces if passage.path}

    if not passages:
        return None

    nodes = sorted(
        passages,
        key=lambda node: (passages[node].path, passages[node].span, node),
    )
    units = [_code_unit(passages[node]) for node in nodes]
    paths = {passages[node].document: passages[node].path for node in nodes}
    commits = view.commit_chunks()

    code_units = []
    for unit in units:
        if unit.kind in CODE_KINDS:
            code_units.append(unit)

    share = len(code_units) / max(1, view.info.nodes.get(Kind.CHUNK, 0) - len(commits))
    names = frozenset(chain.from_iterable(map(_names_of, code_units)))
    index = CodeIndex(units, _history(view, commits, paths))
    return SnapshotCode(
        index,
        np.asarray(nodes, np.int64),
        share,
        names,
    )


def _code_unit(passage: Passage) -> CodeUnit:
    first_line, last_line = passage.lines or (1, 1)
    return CodeUnit(
        passage.path,
        passage.symbol,
        passage.kind,
        first_line,
        last_line,
        text=passage.text,
    )


def _names_of(unit: CodeUnit) -> Iterator[str]:
    """`shop/cart.py` and `cart.py`; `Cart.add`, `add` and `cart.add`."""
    path = PurePosixPath(unit.path)
    if path.stem == "__init__":
        module = path.parent.name
    else:
        module = path.stem

    yield from (unit.path, path.name)
    if unit.symbol:
        yield from (unit.symbol, unit.symbol.rpartition(".")[2], f"{module}.{unit.symbol}")


def _history(
    view: GraphView,
    chunks: Numbers,
    paths: Mapping[str, str],
) -> History:
    """Commits with the files that they touched; `paths` gives the path of a document."""
    if not len(chunks) or _TOUCHED not in view.type_names:
        return History(())

    expansion = view.expand(
        chunks,
        direction=OUT,
        types=[_TOUCHED],
    )
    targets = np.unique(expansion.target)
    files = targets[view.kinds(targets) == KINDS.index(Kind.FILE)]

    path_of_file = {}
    for number, fact in zip(files.tolist(), view.nodes(files), strict=True):
        path_of_file[number] = paths.get(fact.document)

    passages = view.passages(chunks)
    pieces = defaultdict[str, list[Passage]](list)
    for passage in sorted(passages, key=lambda passage: passage.span):
        pieces[passage.document].append(passage)

    touched = defaultdict[str, list[str]](list)
    for row, target in zip(expansion.row.tolist(), expansion.target.tolist(), strict=True):
        if path := path_of_file.get(target):
            touched[passages[row].document].append(path)

    commits = []
    for document, touched_paths in touched.items():
        timestamp = pieces[document][0].timestamp
        if timestamp is not None:
            text = "\n".join(piece.text for piece in pieces[document])
            message, _, _ = text.partition(CHANGED_FILES)
            name = document.rpartition(":")[2]
            commits.append(
                Commit(
                    name,
                    timestamp.timestamp(),
                    message,
                    tuple(touched_paths),
                )
            )

    return History(commits)


_EDGE = 0.5  # what naming both ends of a path's edge adds
_COSINE = 4.0  # what likeness adds; chosen on musique_train: docs/paths.md
# a node that many chunks name says little of each: 0 divides its mass not at all among them, 1
# evenly
_SPREAD = 0.5
_LOOK = 64  # mentions of one node that are looked at
_SHORTLIST = 512  # best supported chunks that are compared by likeness


def passages_of(
    view: MeteredView,
    question: Question,
    nodes: Mapping[int, float],
    paths: Sequence[FoundPath] = (),
    *,
    limit: int,
) -> tuple[FoundPassage, ...]:
    """The chunks that name these nodes, which carry a mass each, or the nodes of these paths; best
    first.

    A node of a path carries at least the path's share of the best one. Nothing is read: mentions
    are scanned and vectors compared in memory. A chunk counts its support relative to the best, and
    its likeness; ties fall to the number.
    """
    mass = {int(node): float(value) for node, value in nodes.items() if value > 0.0}
    for path, weight in zip(paths, _path_weights(paths), strict=True):
        for node in path.nodes:
            mass[node] = max(mass.get(node, 0.0), weight)

    entities = np.array(sorted(mass, key=lambda node: (-mass[node], node)), np.int64)
    if not len(entities):
        return ()

    is_chunk = view.kinds(entities) == CHUNK
    expansion = view.expand(
        entities[~is_chunk],
        direction=IN,
        types=[MENTIONS],
        fanout=_LOOK,
        mask=question.mask,
    )
    mentioned = entities[~is_chunk][expansion.row]
    distinct, place_of_node, counts = np.unique(
        mentioned,
        return_inverse=True,
        return_counts=True,
    )
    node_masses = np.array([mass[node] for node in distinct.tolist()])
    passed_on = node_masses / np.maximum(counts, 1) ** _SPREAD
    # What each mention passes on to its chunk.
    share = passed_on[place_of_node] * expansion.weight.astype(np.float64)
    seed_chunks = entities[is_chunk]
    chunks, place = np.unique(
        np.concatenate([expansion.target, seed_chunks]),
        return_inverse=True,
    )
    masses = np.concatenate([share, [mass[node] for node in seed_chunks.tolist()]])
    graph = np.bincount(place, masses, len(chunks)).astype(np.float64)
    graph += _EDGE * _edge_support(place[: len(mentioned)], mentioned, paths, len(chunks))
    short = np.sort(np.lexsort((chunks, -graph))[: max(limit, _SHORTLIST)])
    chunks = chunks[short]
    relative = graph[short] / max(float(graph.max(initial=0.0)), 1e-12)
    likeness = Relevance(view, question).cosine(chunks)
    score = relative + _COSINE * likeness

    passages = []
    for row in np.lexsort((chunks, -score))[:limit].tolist():
        tiers = {
            "graph": float(relative[row]),
            "vector": float(likeness[row]),
        }
        passages.append(
            FoundPassage(
                int(chunks[row]),
                float(score[row]),
                tiers,
            )
        )

    return tuple(passages)


def _path_weights(paths: Sequence[FoundPath]) -> list[float]:
    """By rank, 1 for the best: scores of different searches have different scales."""
    return [1.0 / (1 + rank) ** 0.5 for rank in range(len(paths))]


def _edge_support(
    place: Numbers,
    mentioned: Numbers,
    paths: Sequence[FoundPath],
    n_chunks: int,
) -> Floats:
    """For each chunk, the weight of the path edges whose ends it both names."""
    support = np.zeros(n_chunks)

    chunks_of: dict[int, set[int]] = {}
    for chunk, node in zip(place.tolist(), mentioned.tolist(), strict=True):
        chunks_of.setdefault(node, set()).add(chunk)

    for path, weight in zip(paths, _path_weights(paths), strict=True):
        for tail, head in pairwise(path.nodes):
            both = chunks_of.get(tail, set()) & chunks_of.get(head, set())
            support[sorted(both)] += weight / max(1, len(both)) ** 0.5

    return support
