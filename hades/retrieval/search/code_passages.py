"""Code hits joined with passages."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
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

# Passages of code for a question: the index of a snapshot's files, and how its hits join what the text search
# found. The index is made once for each open view and kept as long as the view; making it is not part of a turn.
CODE = "code"
_TOUCHED = "touched"
_CODE_SHARE = 0.5  # of the chunks: from here on a workspace is what the graph is about
_SOME_CODE = 0.1  # below it the code beside a manual is a few helper scripts, which no question is about
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
                search_code(code.index, code.index.files[0], 1)  # builds what an index builds when first asked
        return _indexes[view]


def find_code(view: MeteredView, code: SnapshotCode, question: Question, limit: int) -> CodeHits:
    """Search, in a stage of its own."""
    with view.turn.stage("code") as stage:
        cosines = None
        if question.vector is not None:
            cosines = view.cosines(question.vector, code.nodes, model=question.model).astype(np.float64)
        hits = search_code(code.index, question.text, limit if view.only is None else len(code.index.units), cosines)
        hits = hits if view.only is None else _hits_inside(view, code, hits, limit)
        stage.taken, stage.given = len(code.index.units), len(hits.units)
        stage.coverage = float(bool(hits.units))
    return hits


def _hits_inside(view: MeteredView, code: SnapshotCode, hits: CodeHits, limit: int) -> CodeHits:
    """The hits whose files belong to the domain of the turn."""
    rows = np.array([row for row, _ in hits.units], np.int64)
    inside = view.is_inside(code.nodes[rows]).tolist() if len(rows) else []
    units = [unit for unit, is_kept in zip(hits.units, inside, strict=True) if is_kept]
    files = {code.index.units[row].path for row, _ in units}
    return CodeHits(
        tuple([one for one in hits.files if one.id in files][:limit]),
        tuple([one for one in hits.symbols if one.id.rpartition(":")[0] in files][:limit]),
        tuple(units[:limit]),
    )


def code_leads(code: SnapshotCode, text: str) -> bool:
    """Whether code stands first: the graph is about code, or has some and the question says what only code has.

    Beside a manual one line leads to code only where it names some of this code or asks where code is.
    """
    question = read_code_question(text)
    is_line = not (question.frames or question.code or question.prose.strip())
    if is_line and code.share <= 1.0 - _MANUAL:
        # A name in code marks is that of a symbol, or a dotted name or a path ends in one of this code.
        endings = [".".join(name.split(".")[-2:]) for name in question.dotted]
        names_code = not code.names.isdisjoint([*question.inline, *question.paths, *endings])
        return code.share >= _SOME_CODE and (names_code or _ASKS_CODE.search(text) is not None)
    return code.share >= _CODE_SHARE or (question.has_evidence and code.share >= _SOME_CODE)


def join_code(
    view: MeteredView, code: SnapshotCode, hits: CodeHits, text: str, others: Sequence[FoundPassage], limit: int
) -> list[FoundPassage]:
    """Code first where the graph is about code or the question is; what else was found follows.

    For a plain sentence a passage of the other kind stands before those that speak clearly less of the question: a
    changelog may answer what no function does. The best passage of a manual keeps its place. Scores fall with rank.
    """
    found = [FoundPassage(int(code.nodes[row]), score, {CODE: score}) for row, score in hits.units]
    question, leads = read_code_question(text), code_leads(code, text)
    is_plain = not (question.has_evidence or question.prose.strip())
    first, second = (found, list(others)) if leads else (list(others), found)
    lowest = min((one.score for one in first), default=1.0)  # each search has a scale of its own
    scale = lowest / max((lowest, *(one.score for one in second))) if lowest > 0.0 else 0.0
    joined: dict[int, FoundPassage] = {}
    for passage in (*first, *(replace(one, score=scale * one.score) for one in second)):
        before = joined.get(passage.node)
        tiers = passage.tiers if before is None else {**passage.tiers, **before.tiers}
        joined[passage.node] = replace(before or passage, tiers=tiers)
    ranked = list(joined.values())
    if is_plain:
        is_code = {
            int(node) for node, unit in zip(code.nodes, code.index.units, strict=True) if unit.kind in CODE_KINDS
        }
        behind = {one.node for one in second if (one.node in is_code) != leads}
        ranked = _move_up(view, code.index, text, ranked, behind, first=0 if leads else 1)
    worth = list(accumulate((one.score for one in reversed(ranked[:limit])), max))[::-1]
    return [replace(one, score=score) for one, score in zip(ranked, worth, strict=False)]


def _move_up(
    view: MeteredView, index: CodeIndex, text: str, ranked: list[FoundPassage], behind: set[int], first: int
) -> list[FoundPassage]:
    """Passages of `behind`, the best few, before the first from `first` on that speaks clearly less of the question."""
    leading = [one for one in ranked if one.node not in behind][:_COMPARED]
    rising = [one for one in ranked if one.node in behind][:_COMPARED]
    if not leading or not rising:
        return ranked
    nodes = [one.node for one in (*leading, *rising)]
    wanted = _rarities(index, text)
    shares = {
        node: sum(wanted[term] for term in wanted.keys() & set(code_terms(f"{one.title} {one.text}")))
        for node, one in zip(nodes, view.passages(np.array(nodes, np.int64)), strict=False)
    }
    placed, total = list(leading), sum(wanted.values())
    for one in rising:
        enough = shares.get(one.node, 0.0) - _CLEARLY_LESS * total
        less = (at for at, other in enumerate(placed) if at >= first and shares.get(other.node, 0.0) <= enough)
        place = next(less, len(placed))
        placed.insert(place, one)
    moved = {one.node for one in placed}
    return [*placed, *(one for one in ranked if one.node not in moved)]


def _rarities(index: CodeIndex, text: str) -> dict[str, float]:
    """The words of a question, each with how rare it is in the code; one that the code lacks counts as the rarest."""
    terms, rarity = index.words.terms, index.unit_postings.rarity
    most = float(rarity.max()) if len(rarity) else 1.0
    return {
        word: float(rarity[terms[word]]) if word in terms and terms[word] < len(rarity) else most
        for word in dict.fromkeys(code_terms(text))
    }


def rank_level(level: str, hits: CodeHits | None, passages: Sequence[CitedPassage]) -> tuple[RankedItem, ...]:
    """Files or symbols, best first; where code was not searched, those of the passages."""
    if level == PASSAGE:
        return ()
    if hits is not None:
        names = [(one.id, one.score) for one in (hits.files if level == FILE else hits.symbols)]
    else:
        best: dict[str, float] = {}
        for passage in passages:
            path = passage.path or passage.document
            if level == FILE or passage.symbol:
                best.setdefault(path if level == FILE else f"{path}:{passage.symbol}", passage.score)
        names = list(best.items())
    return tuple(RankedItem(rank=rank, id=name, score=score) for rank, (name, score) in enumerate(names, 1))


def _read(view: GraphView) -> SnapshotCode | None:
    found = zip(view.file_chunks().tolist(), view.passages(view.file_chunks()), strict=True)
    ordered = sorted((one.path, one.span, node, one) for node, one in found if one.path)
    if not ordered:
        return None
    nodes, read = [node for _, _, node, _ in ordered], [one for _, _, _, one in ordered]
    units = [
        CodeUnit(passage.path, passage.symbol, passage.kind, *(passage.lines or (1, 1)), passage.text)
        for passage in read
    ]
    paths = {passage.document: passage.path for passage in read}
    commits = view.commit_chunks()
    n_code = sum(unit.kind in CODE_KINDS for unit in units)
    share = n_code / max(1, view.info.nodes.get(Kind.CHUNK, 0) - len(commits))
    names = {name for unit in units if unit.kind in CODE_KINDS for name in _names_of(unit)}
    index = CodeIndex(units, _history(view, commits, paths))
    return SnapshotCode(index, np.asarray(nodes, np.int64), share, frozenset(names))


def _names_of(unit: CodeUnit) -> Iterator[str]:
    """`shop/cart.py` and `cart.py`; `Cart.add`, `add` and `cart.add`."""
    path = PurePosixPath(unit.path)
    module = path.parent.name if path.stem == "__init__" else path.stem
    yield from (unit.path, path.name)
    if unit.symbol:
        yield from (unit.symbol, unit.symbol.rpartition(".")[2], f"{module}.{unit.symbol}")


def _history(view: GraphView, chunks: Numbers, paths: Mapping[str, str]) -> History:
    """Commits with the files that they touched; `paths` gives the path of a document."""
    if not len(chunks) or _TOUCHED not in view.type_names:
        return History(())
    found = view.expand(chunks, direction=OUT, types=[_TOUCHED])
    targets = np.unique(found.target)
    files = targets[view.kinds(targets) == KINDS.index(Kind.FILE)]
    place = {number: paths.get(one.document) for number, one in zip(files.tolist(), view.nodes(files), strict=True)}
    read = view.passages(chunks)
    pieces, touched = defaultdict[str, list[Passage]](list), defaultdict[str, list[str]](list)
    for one in sorted(read, key=lambda one: one.span):
        pieces[one.document].append(one)
    for row, target in zip(found.row.tolist(), found.target.tolist(), strict=True):
        if path := place.get(target):
            touched[read[row].document].append(path)
    commits = []
    for document, files_of in touched.items():
        first = pieces[document][0]
        if first.timestamp is not None:
            message = "\n".join(one.text for one in pieces[document]).partition(CHANGED_FILES)[0]
            name = document.rpartition(":")[2]
            commits.append(Commit(name, first.timestamp.timestamp(), message, tuple(files_of)))
    return History(commits)


_EDGE = 0.5  # what naming both ends of a path's edge adds
_COSINE = 4.0  # what likeness adds; chosen on musique_train: docs/paths.md
_SPREAD = 0.5  # a node that many chunks name says little of each: 0 divides its mass not at all among them, 1 evenly
_LOOK = 64  # mentions of one node that are looked at
_SHORTLIST = 512  # best supported chunks that are compared by likeness


def passages_of(
    view: MeteredView, question: Question, nodes: Mapping[int, float], paths: Sequence[FoundPath] = (), *, limit: int
) -> tuple[FoundPassage, ...]:
    """The chunks that name these nodes, which carry a mass each, or the nodes of these paths; best first.

    de of a path carries at least the path's share of the best one. Nothing is read: mentions are scanned and vectors
    compared in memory. A chunk counts its support relative to the best, and its likeness; ties fall to the number.
    """
    mass = {int(node): float(value) for node, value in nodes.items() if value > 0.0}
    for path, weight in zip(paths, _path_weights(paths), strict=True):
        for node in path.nodes:
            mass[node] = max(mass.get(node, 0.0), weight)
    entities = np.array(sorted(mass, key=lambda node: (-mass[node], node)), np.int64)
    if not len(entities):
        return ()
    is_chunk = view.kinds(entities) == CHUNK
    found = view.expand(entities[~is_chunk], direction=IN, types=[MENTIONS], fanout=_LOOK, mask=question.mask)
    named = entities[~is_chunk][found.row]
    distinct, at, counts = np.unique(named, return_inverse=True, return_counts=True)
    passed = np.array([mass[node] for node in distinct.tolist()]) / np.maximum(counts, 1) ** _SPREAD
    share = passed[at] * found.weight.astype(np.float64)  # what each mention passes on to its chunk
    own = entities[is_chunk]
    chunks, place = np.unique(np.concatenate([found.target, own]), return_inverse=True)
    held = np.concatenate([share, [mass[node] for node in own.tolist()]])
    graph = np.bincount(place, held, len(chunks)).astype(np.float64)
    graph += _EDGE * _edge_support(place[: len(named)], named, paths, len(chunks))
    short = np.sort(np.lexsort((chunks, -graph))[: max(limit, _SHORTLIST)])
    chunks, relative = chunks[short], graph[short] / max(float(graph.max(initial=0.0)), 1e-12)
    likeness = Relevance(view, question).cosine(chunks)
    score = relative + _COSINE * likeness
    return tuple(
        FoundPassage(int(chunks[at]), float(score[at]), {"graph": float(relative[at]), "vector": float(likeness[at])})
        for at in np.lexsort((chunks, -score))[:limit].tolist()
    )


def _path_weights(paths: Sequence[FoundPath]) -> list[float]:
    """By rank, 1 for the best: scores of different searches have different scales."""
    return [1.0 / (1 + rank) ** 0.5 for rank in range(len(paths))]


def _edge_support(place: Numbers, named: Numbers, paths: Sequence[FoundPath], n_chunks: int) -> Floats:
    """For each chunk, the weight of the path edges whose ends it both names."""
    support = np.zeros(n_chunks)
    chunks_of: dict[int, set[int]] = {}
    for chunk, node in zip(place.tolist(), named.tolist(), strict=True):
        chunks_of.setdefault(node, set()).add(chunk)
    for path, weight in zip(paths, _path_weights(paths), strict=True):
        for tail, head in pairwise(path.nodes):
            both = chunks_of.get(tail, set()) & chunks_of.get(head, set())
            support[sorted(both)] += weight / max(1, len(both)) ** 0.5
    return support
