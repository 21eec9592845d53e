"""A path in words; token bounds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from hades.ports.graph import EdgeFacts, NodeFacts
from hades.ports.services import Tokenizer
from hades.retrieval.core.types import EXPLAIN
from hades.retrieval.walks.flow import calculate_path_score
from schemas.answer import Path

# What packing asks of a tokenizer, and the ceiling that stands in where there is none.
BYTES_PER_TOKEN = 3


class TokenCounter(Protocol):
    """The part of a `Tokenizer` that budgets need."""

    def count(self, text: str) -> int:
        """Number of tokens in the text."""

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of the text within a number of tokens."""


class ByteCeiling:
    """Three bytes to a token, rounded up: more than English and code need, so a budget held here
    holds anywhere.
    """

    def count(self, text: str) -> int:
        """Bytes over three, rounded up; only the empty text is free."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)

    def truncate(self, text: str, tokens: int) -> str:
        """The prefix that fits, never half a character."""
        prefix = text.encode("utf-8", "surrogatepass")[: BYTES_PER_TOKEN * max(tokens, 0)]
        while True:
            try:
                return prefix.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                prefix = prefix[:-1]


CEILING = ByteCeiling()


def shorten(counter: TokenCounter, text: str, tokens: int) -> str:
    """The text, or as many whole words of it as fit with an ellipsis behind them; empty when none
    does.
    """
    if counter.count(text) <= tokens:
        return text

    for room in range(tokens - 1, 0, -1):
        prefix = counter.truncate(text, room)
        if not text[len(prefix) : len(prefix) + 1].isspace():
            prefix = prefix.rpartition(" ")[0] or prefix  # one long word is cut inside

        cut = prefix.rstrip(" ,;:.") + "…"
        if len(cut) > 1 and counter.count(cut) <= tokens:
            return cut

    return ""


def shares(demands: Sequence[int], room: int) -> list[int]:
    """How much each may have of a room: all it wants while that fits, else the longest are levelled
    first.
    """
    grants = [0] * len(demands)
    remaining = max(0, room)
    order = sorted(
        range(len(demands)),
        key=lambda place: (demands[place], place),
    )

    for served, place in enumerate(order):
        grants[place] = min(demands[place], remaining // (len(order) - served))
        remaining -= grants[place]

    return grants


# A path in words: `A --[rel; snippet: "..."]--> B`, an edge that is walked against its direction `A
# <--[rel]-- B`.
MAX_PATH_TOKENS = 120
NUMBER = "00) "  # room for a path's number in a prompt
_ARROW_LIKE = re.compile(r"-{2,}(?=[\[>])|(?<=[\]<])-{2,}")


def path_text(
    counter: TokenCounter,
    nodes: Sequence[NodeFacts],
    edges: Sequence[EdgeFacts],
    outbound: Sequence[bool],
    max_tokens: int = MAX_PATH_TOKENS,
) -> str:
    """The path, short enough to stand in a prompt with its number and its node ids in at most
    `max_tokens`.

    Ids that would take more than half of that have no room beside it and are left to the record.
    Snippets are shortened first, the longest before the others, then names and relations; the
    arrows stay whole.
    """
    if len(edges) != len(nodes) - 1 or len(outbound) != len(edges):
        raise ValueError(
            f"a path of {len(nodes)} nodes has {len(nodes) - 1} edges with a direction each, not "
            f"{len(edges)}"
        )

    names = [plain(node.name) or node.id for node in nodes]
    relations = [plain(edge.label) or edge.type for edge in edges]

    snippets = []
    for edge in edges:
        snippets.append(plain(edge.snippet).replace('"', "'"))

    ids = counter.count(cite(node.id for node in nodes))
    room = max_tokens - counter.count(NUMBER) - (ids if ids <= max_tokens // 2 else 0)
    bare = _join(names, relations, [""] * len(edges), outbound)

    if (over := counter.count(bare) - room) > 0:
        words = _cut_words(counter, [*names, *relations], over)
        return _join(
            words[: len(names)],
            words[len(names) :],
            [""] * len(edges),
            outbound,
        )

    return _with_snippets(
        counter,
        snippets,
        room,
        lambda cut: _join(names, relations, cut, outbound),
    )


def cite(ids: Iterable[str]) -> str:
    """The ids of a path's nodes in the brackets that follow it in a prompt, so that an answer can
    cite them.
    """
    return f" ({', '.join(ids)})"


def rationale(
    edges: Sequence[EdgeFacts],
    *,
    seed: str,
    origin: str,
    reliability: float,
) -> str:
    """Why this path: where it began, how it was found, what carries it and where it is thinnest."""
    if not edges:
        return f"{seed} itself matches the question"

    hops = f"{len(edges)} hop" + ("s" if len(edges) > 1 else "")
    weakest = min(edges, key=lambda edge: (1.0 if edge.weight is None else edge.weight, edge.id))
    weight = 1.0 if weakest.weight is None else weakest.weight
    quoting_count = sum(1 for edge in edges if edge.snippet)
    origin_text = "" if origin == EXPLAIN else f" by {origin}"
    return (
        f"{hops} from {seed}{origin_text}, reliability {reliability:.2f}; weakest edge "
        f"{weakest.label or weakest.type} "
        f"({weight:.2f}); {quoting_count} of {len(edges)} edges quote their source"
    )


def describe(path: Mapping[str, Any] | Path) -> str:
    """A path given as a record or as a mapping: its string, then `- name: description` of each
    vertex that has one.
    """
    if not isinstance(path, Mapping):
        return path.text
    if "text" in path:
        return str(path["text"])

    lines = [str(path.get("path", ""))]
    lines += [
        f"- {vertex.get('name') or 'Entity'}: {vertex['description']}"
        for vertex in path.get("vertices") or ()
        if isinstance(vertex, Mapping) and vertex.get("description")
    ]
    return "\n".join(lines)


def reliability_of(path: Mapping[str, Any] | Path) -> float:
    """The reliability a path carries; where it carries none, that of `calculate_path_score`."""
    if not isinstance(path, Mapping):
        return path.reliability

    reliability = path.get("reliability")
    if reliability is None:
        return calculate_path_score(path, None)

    return float(reliability or 0.0)


def _with_snippets(
    counter: TokenCounter,
    snippets: Sequence[str],
    room: int,
    joined: Callable[[Sequence[str]], str],
) -> str:
    """The path with as much of its snippets as fits; a second look only where a tokenizer does not
    simply add up.
    """
    lengths = list(map(counter.count, snippets))
    with_marks = joined(["x" if snippet else "" for snippet in snippets])
    frame = counter.count(with_marks) - sum(map(bool, snippets))
    allowance = room - frame

    while allowance > 0:
        limits = zip(snippets, shares(lengths, allowance), strict=True)
        text = joined([shorten(counter, snippet, tokens) for snippet, tokens in limits])
        if (over := counter.count(text) - room) <= 0:
            return text

        allowance -= over

    return joined([""] * len(snippets))


def _cut_words(
    counter: TokenCounter,
    words: Sequence[str],
    over: int,
) -> list[str]:
    """Names and relations cut by a number of tokens, the longest first; each keeps at least one."""
    lengths = list(map(counter.count, words))
    allowances = shares(lengths, sum(lengths) - over)
    return [
        shorten(counter, word, tokens) or counter.truncate(word, 1) or word[:1]
        for word, tokens in zip(words, allowances, strict=True)
    ]


def _join(
    names: Sequence[str],
    relations: Sequence[str],
    snippets: Sequence[str],
    outbound: Sequence[bool],
) -> str:
    parts = [names[0]]
    for name, relation, snippet, out in zip(
        names[1:],
        relations,
        snippets,
        outbound,
        strict=True,
    ):
        if snippet:
            inside = f'{relation}; snippet: "{snippet}"'
        else:
            inside = relation

        parts.append(f"--[{inside}]-->" if out else f"<--[{inside}]--")
        parts.append(name)

    return " ".join(parts)


def plain(text: str) -> str:
    """A name or a quotation on one line, without anything that reads as an arrow."""
    line = " ".join(text.split())
    return _ARROW_LIKE.sub("–", line) if "--" in line else line


class QuickCounts:
    """A `TokenCounter` over a tokenizer's memory of words; its counts are the tokenizer's own.

    Made for one turn, which counts hundreds of short texts: a line that is weighed, fitted and
    added is counted once.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.count = cache(tokenizer.count)

    def truncate(self, text: str, tokens: int) -> str:
        """As many whole words as fit; only a word that is too long by itself is cut inside."""
        ends, counts = self._tokenizer.word_ends(text, max(0, tokens) + 1)
        if counts and counts[-1] <= tokens:
            return text

        fitting = bisect_right(counts, tokens)
        if fitting:
            return text[: ends[fitting - 1]]

        return self._tokenizer.truncate(text, tokens)
