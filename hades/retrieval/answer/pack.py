"""One packer for every prompt: the best paths and passages that fit, never a token above the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Generic, Protocol, TypeVar

from hades.retrieval.answer.context_window import ContextWindowManager, WindowSize
from hades.retrieval.answer.path_text import MAX_PATH_TOKENS, WrittenPath, cite, plain
from hades.retrieval.answer.prompt import MAX_HIERARCHY_TOKENS, fill, format_paths_for_prompt, short_summary
from hades.retrieval.answer.token_bound import TokenCounter, shorten


class HasId(Protocol):
    """Anything that can be cited."""

    @property
    def id(self) -> str:
        """Its `_id`."""
        ...


class CitablePath(WrittenPath, Protocol):
    """A path whose nodes can be cited."""

    @property
    def nodes(self) -> Sequence[HasId]:
        """The nodes along it."""
        ...


class CitablePassage(HasId, Protocol):
    """A passage with the title of what it was cut from."""

    @property
    def title(self) -> str:
        """Of its document."""
        ...

    @property
    def text(self) -> str:
        """Its words."""
        ...


class TopicSummary(Protocol):
    """A topic of the hierarchy; level 2 stands above level 1."""

    @property
    def level(self) -> int:
        """1 for a topic, 2 for a super-topic."""
        ...

    @property
    def summary(self) -> str:
        """What it is about."""
        ...


P = TypeVar("P", bound=CitablePath)
S = TypeVar("S", bound=CitablePassage)
T = TypeVar("T", bound=TopicSummary)


@dataclass(frozen=True)
class PackedPrompt(Generic[P, S, T]):
    """What was taken, best first, and the prompt that holds it.

    Numbers in the prompt are ranks of the result: path 3 is the third path, and passages are numbered on from the last
    path (`path_numbers`, `passage_numbers`). `trimmed` counts what was left out or cut; `tokens` are those of the
    prompt and of its two parts.
    """

    prompt: str
    paths: tuple[P, ...]
    passages: tuple[S, ...]
    hierarchy: tuple[T, ...]
    path_numbers: tuple[int, ...]
    passage_numbers: tuple[int, ...]
    tokens: dict[str, int]
    trimmed: int


def pack(
    tokenizer: TokenCounter,
    paths: Sequence[P],
    passages: Sequence[S],
    hierarchy: Sequence[T],
    *,
    prompt_tokens: int,
    per_path_tokens: int = MAX_PATH_TOKENS,
    hierarchy_tokens: int = MAX_HIERARCHY_TOKENS,
    final_context: int,
) -> PackedPrompt[P, S, T]:
    """At most `final_context` paths and passages, both given best first, in turns; the best path stands last.

    A passage stands among the paths as `title --[contains; snippet: "..."]--> id`, with the same limit. The hierarchy
    may take a third of the prompt at most. A budget that cannot hold the empty frame gives an empty prompt.
    """
    frame = tokenizer.count(fill([], ""))
    room = prompt_tokens - frame
    if room < 0:
        nothing = {"prompt": 0, "hierarchy": 0, "paths": 0}
        return PackedPrompt("", (), (), (), (), (), nothing, len(paths) + len(passages) + len(hierarchy))
    topics, summary = _ledger(tokenizer, hierarchy, min(hierarchy_tokens, room // 3))
    window = ContextWindowManager(room - tokenizer.count(f" {summary}") if summary else room, 0, tokenizer)
    lines: list[_Line] = []
    for line in _in_turns(tokenizer, paths, passages, per_path_tokens):
        if len(lines) == final_context:
            break
        if line.tokens <= per_path_tokens and window.fits(_number(line.text)):
            window.add_path({"text": _number(line.text)})
            lines.append(line)
    prompt = _render(lines, summary)
    while tokenizer.count(prompt) > prompt_tokens and (lines or summary):  # a tokenizer that does not add up
        if lines:
            lines.pop()
        else:
            topics, summary = (), ""
        prompt = _render(lines, summary)
    numbers = _numbers(lines)
    kept_paths = [line.place for line in lines if line.is_path]
    kept_passages = [line.place for line in lines if not line.is_path]
    return PackedPrompt(
        prompt=prompt,
        paths=tuple(paths[place] for place in kept_paths),
        passages=tuple(passages[place] for place in kept_passages),
        hierarchy=topics,
        path_numbers=tuple(numbers[True, place] for place in kept_paths),
        passage_numbers=tuple(numbers[False, place] for place in kept_passages),
        tokens={
            "prompt": tokenizer.count(prompt),
            "hierarchy": tokenizer.count(summary),
            "paths": tokenizer.count("\n".join(line.text for line in _reading_order(lines))),
        },
        trimmed=len(paths) + len(passages) + len(hierarchy) - len(lines) - len(topics) + sum(one.cut for one in lines),
    )


def pack_window(
    packed: PackedPrompt[P, S, T], query: str, paths: Sequence[P], window: WindowSize, tokenizer: TokenCounter
) -> PackedPrompt[P, S, T]:
    """The same result with a prompt of the question and the paths that fit the window, the most reliable last."""
    prompt = ""
    if paths:
        prompt = format_paths_for_prompt(
            paths, query, max_tokens=window.max_tokens, reserve_tokens=window.reserve_tokens, tokenizer=tokenizer
        )
    tokens = tokenizer.count(prompt)
    return replace(packed, prompt=prompt, tokens={"prompt": tokens, "hierarchy": 0, "paths": tokens})


@dataclass(frozen=True)
class _Line:
    """A path or passage as one line of the prompt, without its number; `place` is where it stood in the question."""

    text: str
    tokens: int
    is_path: bool
    place: int
    cut: bool = False


def _in_turns(
    counter: TokenCounter, paths: Sequence[CitablePath], passages: Sequence[CitablePassage], tokens: int
) -> Iterator[_Line]:
    """A path, a passage, a path, ..., each written when it is asked for."""
    for place, (path, passage) in enumerate(zip_longest(paths, passages)):
        if path is not None:
            yield _path_line(counter, path, place, tokens)
        if passage is not None:
            yield _passage_line(counter, passage, place, tokens)


def _path_line(counter: TokenCounter, path: CitablePath, place: int, tokens: int) -> _Line:
    """The path with its ids where they fit beside it."""
    bare = " ".join(path.text.split())
    full = bare + cite(node.id for node in path.nodes)
    with_ids = counter.count(_number(full))
    return (
        _Line(full, with_ids, True, place)
        if with_ids <= tokens
        else _Line(bare, counter.count(_number(bare)), True, place)
    )


def _passage_line(counter: TokenCounter, passage: CitablePassage, place: int, tokens: int) -> _Line:
    """The passage as an edge from its title; its text is cut to what the line leaves it."""
    title = shorten(counter, plain(passage.title), tokens // 4) or "document"
    text = plain(passage.text.removeprefix(passage.title)).replace('"', "'")
    before, after = f'{title} --[contains; snippet: "', f'"]--> {passage.id}'
    snippet = shorten(counter, text, tokens - counter.count(_number(before + after)))
    line = before + snippet + after
    return _Line(line, counter.count(_number(line)), False, place, cut=snippet != text)


def _ledger(counter: TokenCounter, topics: Sequence[T], tokens: int) -> tuple[tuple[T, ...], str]:
    """The topics, super-topics first, a line each, as many as fit."""
    ordered = sorted((topic for topic in topics if topic.summary.strip()), key=lambda topic: -topic.level)
    lines = [("▸ " if topic.level < 2 else "") + plain(topic.summary) for topic in ordered]
    summary = short_summary(counter, "\n".join(lines), tokens)
    return tuple(ordered[: len(summary.splitlines())]), summary


def _reading_order(lines: Sequence[_Line]) -> list[_Line]:
    """Worst first; the best path, or without one the best passage, last."""
    order = list(reversed(lines))
    best = next((line for line in lines if line.is_path), None)
    if best is not None:
        order.remove(best)
        order.append(best)
    return order


def _numbers(lines: Sequence[_Line]) -> dict[tuple[bool, int], int]:
    """The number of each line: paths by rank from 1, then passages by rank."""
    best_first = sorted(lines, key=lambda line: (not line.is_path, line.place))
    return {(line.is_path, line.place): number for number, line in enumerate(best_first, 1)}


def _render(lines: Sequence[_Line], summary: str) -> str:
    order, numbers = _reading_order(lines), _numbers(lines)
    return fill([line.text for line in order], summary, [numbers[line.is_path, line.place] for line in order])


def _number(line: str) -> str:
    return f"00) {line}"
