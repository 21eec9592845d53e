"""A path in words: `A --[rel; snippet: "..."]--> B`, an edge that is walked against its direction `A <--[rel]-- B`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from hades.ports.graph import EdgeFacts, NodeFacts
from hades.retrieval.answer.token_bound import TokenCounter, shares, shorten
from hades.retrieval.turn.types import EXPLAIN

MAX_PATH_TOKENS = 120
DECAY = 0.85  # of what flows, a hop
_NUMBER = "00) "  # room for a path's number in a prompt
_ARROW_LIKE = re.compile(r"-{2,}(?=[\[>])|(?<=[\]<])-{2,}")


class WrittenPath(Protocol):
    """A path that has been put into words."""

    @property
    def text(self) -> str:
        """The path as `path_text` wrote it."""
        ...

    @property
    def reliability(self) -> float:
        """How much of the flow arrives, in [0, 1]."""
        ...


def path_text(
    counter: TokenCounter,
    nodes: Sequence[NodeFacts],
    edges: Sequence[EdgeFacts],
    outbound: Sequence[bool],
    max_tokens: int = MAX_PATH_TOKENS,
) -> str:
    """The path, short enough to stand in a prompt with its number and its node ids in at most `max_tokens`.

    Ids that would take more than half of that have no room beside it and are left to the record.
    Snippets are shortened first, the longest before the others, then names and relations; the arrows stay whole.
    """
    if len(edges) != len(nodes) - 1 or len(outbound) != len(edges):
        raise ValueError(
            f"a path of {len(nodes)} nodes has {len(nodes) - 1} edges with a direction each, not {len(edges)}"
        )
    names = [plain(node.name) or node.id for node in nodes]
    relations = [plain(edge.label) or edge.type for edge in edges]
    snippets = [plain(edge.snippet).replace('"', "'") for edge in edges]
    ids = counter.count(citation(nodes))
    room = max_tokens - counter.count(_NUMBER) - (ids if ids <= max_tokens // 2 else 0)
    bare = _join(names, relations, [""] * len(edges), outbound)
    if (over := counter.count(bare) - room) > 0:
        words = _cut_words(counter, [*names, *relations], over)
        return _join(words[: len(names)], words[len(names) :], [""] * len(edges), outbound)
    return _with_snippets(counter, snippets, room, lambda cut: _join(names, relations, cut, outbound))


def citation(nodes: Sequence[NodeFacts]) -> str:
    """The ids of a path's nodes as a prompt shows them, so that an answer can cite them."""
    return cite(node.id for node in nodes)


def cite(ids: Iterable[str]) -> str:
    """Ids in the brackets that follow a path."""
    return f" ({', '.join(ids)})"


def rationale(edges: Sequence[EdgeFacts], *, seed: str, origin: str, reliability: float) -> str:
    """Why this path: where it began, how it was found, what carries it and where it is thinnest."""
    if not edges:
        return f"{seed} itself matches the question"
    hops = f"{len(edges)} hop" + ("s" if len(edges) > 1 else "")
    weakest = min(edges, key=lambda edge: (1.0 if edge.weight is None else edge.weight, edge.id))
    weight = 1.0 if weakest.weight is None else weakest.weight
    read = sum(1 for edge in edges if edge.snippet)
    found = "" if origin == EXPLAIN else f" by {origin}"
    return (
        f"{hops} from {seed}{found}, reliability {reliability:.2f}; weakest edge {weakest.label or weakest.type} "
        f"({weight:.2f}); {read} of {len(edges)} edges quote their source"
    )


def describe(path: Mapping[str, Any] | WrittenPath) -> str:
    """A path given as a record or as a mapping: its string, then `- name: description` of each vertex that has one."""
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


def reliability_of(path: Mapping[str, Any] | WrittenPath) -> float:
    """The reliability a path carries; where it carries none, the flow along it: its weights, one decay a hop."""
    if not isinstance(path, Mapping):
        return path.reliability
    given = path.get("reliability")
    if given is not None:
        return float(given)
    flow = 1.0
    for edge in path.get("edges") or ():
        weight = edge.get("weight") if isinstance(edge, Mapping) else edge.weight
        flow *= DECAY * (1.0 if weight is None else min(1.0, max(0.0, float(weight))))
    return flow


def _with_snippets(
    counter: TokenCounter, snippets: Sequence[str], room: int, joined: Callable[[Sequence[str]], str]
) -> str:
    """The path with as much of its snippets as fits; a second look only where a tokenizer does not simply add up."""
    wanted = counter.count_many(snippets)
    frame = counter.count(joined(["x" if snippet else "" for snippet in snippets])) - sum(1 for one in snippets if one)
    allowance = room - frame
    while allowance > 0:
        given = shares(wanted, allowance)
        text = joined([shorten(counter, one, tokens) for one, tokens in zip(snippets, given, strict=True)])
        if (over := counter.count(text) - room) <= 0:
            return text
        allowance -= over
    return joined([""] * len(snippets))


def _cut_words(counter: TokenCounter, words: Sequence[str], over: int) -> list[str]:
    """Names and relations cut by a number of tokens, the longest first; each keeps at least one."""
    wanted = counter.count_many(words)
    given = shares(wanted, sum(wanted) - over)
    return [
        shorten(counter, word, tokens) or counter.truncate(word, 1) or word[:1]
        for word, tokens in zip(words, given, strict=True)
    ]


def _join(names: Sequence[str], relations: Sequence[str], snippets: Sequence[str], outbound: Sequence[bool]) -> str:
    parts = [names[0]]
    for name, relation, snippet, out in zip(names[1:], relations, snippets, outbound, strict=True):
        inside = f'{relation}; snippet: "{snippet}"' if snippet else relation
        parts.append(f"--[{inside}]-->" if out else f"<--[{inside}]--")
        parts.append(name)
    return " ".join(parts)


def plain(text: str) -> str:
    """A name or a quotation on one line, without anything that reads as an arrow."""
    line = " ".join(text.split())
    return _ARROW_LIKE.sub("–", line) if "--" in line else line
