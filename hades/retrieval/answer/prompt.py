"""Prompts, context windows, packing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from hades.retrieval.answer.path_text import (
    CEILING,
    MAX_PATH_TOKENS,
    NUMBER,
    TokenCounter,
    cite,
    describe,
    plain,
    reliability_of,
    shorten,
)
from hades.text.sentences import first_sentence
from schemas.answer import CitedPassage, Path, Topic

LEVELS = ("high", "medium", "low")
_BETWEEN = "\n\n"
MOST_RELEVANT = "Most relevant path"


@dataclass(frozen=True)
class WindowSize:
    """The context window of a reader: its tokens, and those reserved for its answer."""

    max_tokens: int = 4096
    reserve_tokens: int = 512


@dataclass(frozen=True)
class WindowItem:
    """A path in the window. `tokens` include what parts it from the next one."""

    text: str
    tokens: int
    reliability: float


class ContextWindowManager:
    """Holds what a model will read. Nothing makes it exceed `available_tokens`, and a refused path changes nothing."""

    def __init__(
        self, max_tokens: int = 4096, reserve_tokens: int = 512, tokenizer: TokenCounter | None = None
    ) -> None:
        if not 0 <= reserve_tokens <= max_tokens:
            raise ValueError(f"reserve_tokens is {reserve_tokens}; it must lie between 0 and max_tokens ({max_tokens})")
        self.max_tokens = max_tokens
        self.reserve_tokens = reserve_tokens
        self.available_tokens = max_tokens - reserve_tokens
        self.context: dict[str, list[WindowItem]] = {level: [] for level in LEVELS}
        self._counter = tokenizer or CEILING

    @property
    def current_token_count(self) -> int:
        """Tokens in use."""
        return sum(item.tokens for items in self.context.values() for item in items)

    def add_path(self, path: Mapping[str, Any] | Path, priority: str = "medium") -> bool:
        """Take a path in, in place of less important ones if need be; False, and no change, when it cannot fit.

        A level is named `high` or `high_priority`; an unknown one is medium. Only what is missing is made free: from
        the lowest level up to the path's own, the least reliable first, among equals the oldest.
        """
        named = priority.removesuffix("_priority")
        level = named if named in LEVELS else "medium"
        text = describe(path)
        held = WindowItem(text, self._counter.count(text + _BETWEEN), reliability_of(path))
        leaving = self._leaving(held.tokens - (self.available_tokens - self.current_token_count), level)
        if leaving is None:
            return False
        for name, items in self.context.items():
            self.context[name] = [item for item in items if id(item) not in leaving]
        self.context[level].append(held)
        return True

    def fits(self, text: str) -> bool:
        """Whether a text would fit without anything leaving."""
        return self.current_token_count + self._counter.count(text + _BETWEEN) <= self.available_tokens

    def get_formatted_context(self) -> str:
        """All of it: the lesser half of the high level, then medium and low, then the better half of high, best last.

        Models attend to both ends of a long context and lose its middle.
        """
        high = sorted(self.context["high"], key=lambda item: item.reliability)
        half = len(high) // 2
        items = [*high[:half], *self.context["medium"], *self.context["low"], *high[half:]]
        return _BETWEEN.join(item.text for item in items)

    def summarize_context(self, model_processor: object = None) -> str:
        """The context in fewer words, by a model if it can `summarize`; never longer than the context itself.

        Without a model: the high level in full, the first sentence of each medium item, how many low ones there are.
        """
        full = self.get_formatted_context()
        summarize = getattr(model_processor, "summarize", None)
        summary: str = self._in_short() if summarize is None else summarize(full)
        shorter = len(summary) <= len(full) and self._counter.count(summary) <= self._counter.count(full)
        return summary if shorter and summary.strip() else full

    def _in_short(self) -> str:
        parts = [item.text for item in self.context["high"]]
        parts += [first_sentence(item.text) for item in self.context["medium"]]
        if number := len(self.context["low"]):
            parts.append(f"Additional {number} background context items available.")
        return _BETWEEN.join(parts)

    def _leaving(self, missing: int, level: str) -> set[int] | None:
        """The items that must go so that `missing` tokens are free; None when there are not enough of them."""
        leaving: set[int] = set()
        for name in reversed(LEVELS[LEVELS.index(level) :]):
            for item in sorted(self.context[name], key=lambda item: item.reliability):
                if missing <= 0:
                    return leaving
                leaving.add(id(item))
                missing -= item.tokens
        return leaving if missing <= 0 else None


MAX_HIERARCHY_TOKENS = 300
TEMPLATE = """\
Hierarchy context (HiRAG):
- Topic ▸ Subtopic ▸ Section summaries:{hierarchy}

Relational paths (PathRAG):
{paths}

Instructions: Answer using only the information in these paths. Cite path # and node ids."""


def format_path_prompt(
    paths: Sequence[str | Mapping[str, Any] | Path], hierarchy_summary: str, *, tokenizer: TokenCounter | None = None
) -> str:
    """The paths, numbered by their places from 1, under the hierarchy's summary, which is held to its tokens.

    A path that is longer than its own limit is left out: cut in the middle it would say something else.
    """
    counter = tokenizer or CEILING
    lines = {place: _with_ids(counter, path) for place, path in enumerate(paths, 1)}
    kept = {place: line for place, line in lines.items() if counter.count(line) <= MAX_PATH_TOKENS}
    return fill(list(kept.values()), short_summary(counter, hierarchy_summary), list(kept))


def fill(lines: Sequence[str], summary: str, numbers: Sequence[int] | None = None) -> str:
    """The template with these path lines and this summary; lines are numbered from 1 unless `numbers` are given."""
    places = numbers or range(1, len(lines) + 1)
    numbered = "\n".join(f"{number}) {line}" for number, line in zip(places, lines, strict=True))
    return TEMPLATE.format(hierarchy=f" {summary}" if summary else "", paths=numbered)


def short_summary(counter: TokenCounter, summary: str, tokens: int = MAX_HIERARCHY_TOKENS) -> str:
    """The lines of a summary that fit, the first that does not fit cut."""
    kept: list[str] = []
    for line in filter(None, (one.strip() for one in summary.splitlines())):
        if counter.count("\n".join([*kept, line])) > tokens:
            spare = tokens - counter.count("\n".join([*kept, ""])) if kept else tokens
            cut = shorten(counter, line, spare)
            if cut and counter.count("\n".join([*kept, cut])) <= tokens:
                kept.append(cut)
            break
        kept.append(line)
    return "\n".join(kept)


def format_paths_for_prompt(
    paths: Sequence[Mapping[str, Any] | Path],
    query: str,
    *,
    max_tokens: int = 4096,
    reserve_tokens: int = 512,
    tokenizer: TokenCounter | None = None,
) -> str:
    """The query, then the paths from the least to the most reliable, which stands last under its own heading.

    The budget is the window's: what does not fit is left out, the least reliable first. A query that alone exceeds it
    is a mistake of the caller and refused.
    """
    counter = tokenizer or CEILING
    head = f"Query: {query}\n\nRelevant information:\n\n"
    window = ContextWindowManager(max_tokens, reserve_tokens, counter)
    if not window.fits(head):
        raise ValueError(
            f"the query takes {counter.count(head)} of {window.available_tokens} tokens; shorten it or raise max_tokens"
        )
    window.add_path({"text": head}, "high")
    best_first = sorted(paths, key=reliability_of, reverse=True)
    blocks: list[str] = []
    for path in best_first:
        block = _block(path, is_best=not blocks)
        if window.fits(block):
            window.add_path({"text": block})
            blocks.append(block)
    return head + "\n".join(reversed(blocks))


def _block(path: Mapping[str, Any] | Path, *, is_best: bool) -> str:
    first, *details = describe(path).splitlines() or [""]
    heading = MOST_RELEVANT if is_best else "Path"
    return "".join(f"{line}\n" for line in (f"{heading} ({reliability_of(path):.2f}): {first}", *details))


def _with_ids(counter: TokenCounter, path: str | Mapping[str, Any] | Path, number: str = "") -> str:
    """The path in one line, with the ids of its nodes where it has them and they fit beside it and its number."""
    line = " ".join((path if isinstance(path, str) else describe(path)).split())
    nodes: Any = () if isinstance(path, str) else path.get("nodes", ()) if isinstance(path, Mapping) else path.nodes
    full = line + cite(one["id"] if isinstance(one, Mapping) else one.id for one in nodes) if nodes else line
    return full if counter.count(number + full) <= MAX_PATH_TOKENS else line


@dataclass(frozen=True)
class PackedPrompt:
    """What was taken, best first, and the prompt that holds it.

    Numbers in the prompt are ranks of the result: path 3 is the third path, and passages are numbered on from the last
    path. `trimmed` counts what was left out or cut; `tokens` are those of the prompt and of its two parts.
    """

    prompt: str
    paths: tuple[Path, ...]
    passages: tuple[CitedPassage, ...]
    hierarchy: tuple[Topic, ...]
    tokens: dict[str, int]
    trimmed: int


def pack(
    tokenizer: TokenCounter,
    paths: Sequence[Path],
    passages: Sequence[CitedPassage],
    hierarchy: Sequence[Topic],
    *,
    prompt_tokens: int,
    final_context: int,
) -> PackedPrompt:
    """At most `final_context` paths and passages, both given best first, in turns; the best path stands last.

    A passage stands among the paths as `title --[contains; snippet: "..."]--> id`, with the same limit. The hierarchy
    may take a third of the prompt at most. A budget that cannot hold the empty frame gives an empty prompt.
    """
    frame = tokenizer.count(fill([], ""))
    room = prompt_tokens - frame
    if room < 0:
        nothing = {"prompt": 0, "hierarchy": 0, "paths": 0}
        return PackedPrompt("", (), (), (), nothing, len(paths) + len(passages) + len(hierarchy))
    topics, summary = _ledger(tokenizer, hierarchy, min(MAX_HIERARCHY_TOKENS, room // 3))
    window = ContextWindowManager(room - tokenizer.count(f" {summary}") if summary else room, 0, tokenizer)
    lines: list[_Line] = []
    for line in _in_turns(tokenizer, paths, passages):
        if len(lines) == final_context:
            break
        numbered = NUMBER + line.text
        if tokenizer.count(numbered) <= MAX_PATH_TOKENS and window.fits(numbered):
            window.add_path({"text": numbered})
            lines.append(line)
    prompt = _render(lines, summary, len(paths))
    while tokenizer.count(prompt) > prompt_tokens and (lines or summary):  # a tokenizer that does not add up
        if lines:
            lines.pop()
        else:
            topics, summary = (), ""
        prompt = _render(lines, summary, len(paths))
    return PackedPrompt(
        prompt=prompt,
        paths=tuple(paths[line.place] for line in lines if line.is_path),
        passages=tuple(passages[line.place] for line in lines if not line.is_path),
        hierarchy=topics,
        tokens={
            "prompt": tokenizer.count(prompt),
            "hierarchy": tokenizer.count(summary),
            "paths": tokenizer.count("\n".join(line.text for line in _reading_order(lines))),
        },
        trimmed=len(paths) + len(passages) + len(hierarchy) - len(lines) - len(topics) + sum(one.cut for one in lines),
    )


def pack_window(
    packed: PackedPrompt, query: str, paths: Sequence[Path], window: WindowSize, tokenizer: TokenCounter
) -> PackedPrompt:
    """The same result with a prompt of the question and the paths that fit the window, the most reliable last."""
    prompt = format_paths_for_prompt(paths, query, **asdict(window), tokenizer=tokenizer) if paths else ""
    tokens = tokenizer.count(prompt)
    return replace(packed, prompt=prompt, tokens={"prompt": tokens, "hierarchy": 0, "paths": tokens})


@dataclass(frozen=True)
class _Line:
    """A path or passage as one line of the prompt, without its number; `place` is where it stood in the question."""

    text: str
    is_path: bool
    place: int
    cut: bool = False


def _in_turns(counter: TokenCounter, paths: Sequence[Path], passages: Sequence[CitedPassage]) -> Iterator[_Line]:
    """A path, a passage, a path, ..., each written when it is asked for."""
    for place, (path, passage) in enumerate(zip_longest(paths, passages)):
        if path is not None:
            yield _Line(_with_ids(counter, path, NUMBER), True, place)
        if passage is not None:
            yield _passage_line(counter, passage, place)


def _passage_line(counter: TokenCounter, passage: CitedPassage, place: int) -> _Line:
    """The passage as an edge from its title; its text is cut to what the line leaves it."""
    title = shorten(counter, plain(passage.title), MAX_PATH_TOKENS // 4) or "document"
    text = plain(passage.text.removeprefix(passage.title)).replace('"', "'")
    before, after = f'{title} --[contains; snippet: "', f'"]--> {passage.id}'
    snippet = shorten(counter, text, MAX_PATH_TOKENS - counter.count(NUMBER + before + after))
    return _Line(before + snippet + after, False, place, cut=snippet != text)


def _ledger(counter: TokenCounter, topics: Sequence[Topic], tokens: int) -> tuple[tuple[Topic, ...], str]:
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


def _render(lines: Sequence[_Line], summary: str, paths: int) -> str:
    """The prompt: a path has its rank for a number; passages are numbered on from the last of all `paths`."""
    order = _reading_order(lines)
    numbers = [line.place + 1 if line.is_path else paths + line.place + 1 for line in order]
    return fill([line.text for line in order], summary, numbers)
