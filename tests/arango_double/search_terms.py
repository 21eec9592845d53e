"""Term lookups behind SEARCH, each {term: {document: frequency}}, and how sets of matches combine."""

from tests.arango_double.context import QueryContext
from tests.arango_double.functions_text import edit_distance, like
from tests.arango_double.indexes import holds
from tests.arango_double.scoring import Evidence
from tests.arango_double.values import Value, to_number, type_rank
from tests.arango_double.views import TermIndex

Found = dict[str, dict[str, int]]
Matches = dict[str, tuple[Evidence, ...]]


def term_matches(index: TermIndex, terms: list[str]) -> Found:
    return _chosen(index, [term for term in terms if term in index.postings])


def prefix_matches(index: TermIndex, prefix: str) -> Found:
    return _chosen(index, [term for term in index.postings if term.startswith(prefix)])


def range_matches(index: TermIndex, operator: str, value: str) -> Found:
    """Terms in byte order, as a term dictionary keeps them."""
    wanted = value.encode()
    tests = {
        "<": lambda term: term < wanted,
        "<=": lambda term: term <= wanted,
        ">": lambda term: term > wanted,
        ">=": lambda term: term >= wanted,
    }
    return _chosen(index, [term for term in index.postings if tests[operator](term.encode())])


def like_matches(context: QueryContext, index: TermIndex, pattern: str) -> Found:
    return _chosen(index, [term for term in index.postings if like(context, term, pattern)])


def edit_matches(index: TermIndex, target: str, distance: int, swaps: bool) -> Found:
    return _chosen(index, [term for term in index.postings if edit_distance(term, target, swaps) <= distance])


def compare_scalars(index: TermIndex, operator: str, value: Value) -> Matches:
    """Documents whose number, boolean or null fulfils the comparison."""
    rank = type_rank(value)
    return {
        handle: ()
        for handle, members in index.scalars.items()
        if any(type_rank(member) == rank and holds(member, operator, value) for member in members)
    }


def phrase_matches(index: TermIndex, parts: list[Value]) -> Found:
    """Documents that hold the analyzed parts in order, with the given gaps between them."""
    if not (index.has("frequency") and index.has("position")):
        return {}
    wanted: list[tuple[int, str]] = []
    offset = 0
    for part in parts:
        if isinstance(part, str):
            for term in index.analyzer.terms(part):
                wanted.append((offset, term))
                offset += 1
        else:
            offset += int(to_number(part))
    if not wanted or any(term not in index.postings for _, term in wanted):
        return {}
    first = index.postings[wanted[0][1]]
    found: Found = {}
    for handle, positions in first.items():
        count = sum(
            all(position + gap in index.postings[term].get(handle, ()) for gap, term in wanted)
            for position in positions
        )
        if count:
            for _, term in wanted:
                found.setdefault(term, {})[handle] = count
    return found


def ngram_matches(index: TermIndex, target: str, threshold: float) -> Found:
    """Documents whose n-grams share a long enough ordered part with the target's."""
    if not (index.has("frequency") and index.has("position")):
        return {}
    grams = index.analyzer.terms(target)
    if not grams:
        return {}
    found: Found = {}
    for handle in {handle for gram in grams for handle in index.postings.get(gram, ())}:
        known = {gram: index.postings[gram][handle] for gram in grams if handle in index.postings.get(gram, ())}
        if _longest(grams, known) / len(grams) >= threshold:
            for gram, positions in known.items():
                found.setdefault(gram, {})[handle] = len(positions)
    return found


def _longest(grams: list[str], known: dict[str, list[int]]) -> int:
    """Length of the longest increasing run of positions that follows the order of the grams."""
    best: dict[int, int] = {}
    for gram in grams:
        for position in sorted(known.get(gram, ()), reverse=True):
            best[position] = 1 + max((length for place, length in best.items() if place < position), default=0)
    return max(best.values(), default=0)


def _chosen(index: TermIndex, terms: list[str]) -> Found:
    return {term: {handle: len(positions) for handle, positions in index.postings[term].items()} for term in terms}


def both(left: Matches, right: Matches) -> Matches:
    """Documents in both, with the evidence of both."""
    return {handle: evidence + right[handle] for handle, evidence in left.items() if handle in right}


def either(left: Matches, right: Matches) -> Matches:
    """Documents in either, with all evidence."""
    joined = dict(left)
    for handle, evidence in right.items():
        joined[handle] = joined.get(handle, ()) + evidence
    return joined


def enough(parts: list[Matches], least: int) -> Matches:
    """Documents in at least `least` of the parts."""
    counts: dict[str, int] = {}
    joined: Matches = {}
    for part in parts:
        for handle in part:
            counts[handle] = counts.get(handle, 0) + 1
        joined = either(joined, part)
    return {handle: evidence for handle, evidence in joined.items() if counts[handle] >= least}
