"""Prompts, context windows, packing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
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
    """Holds what a model will read. Nothing makes it exceed `available_tokens`, and a refused path
    changes nothing.
    """

    def __init__(
        self,
        max_tokens: int = 4096,
        reserve_tokens: int = 512,
        tokenizer: TokenCounter | None = None,
    ) -> None:
        if not 0 <= reserve_tokens <= max_tokens:
            raise ValueError(
                f"reserve_tokens is {reserve_tokens}; it must lie between 0 and max_tokens "
                f"({max_tokens})"
            )

        self.max_tokens = max_tokens
        self.reserve_tokens = reserve_tokens
        self.available_tokens = max_tokens - reserve_tokens
        self.context: dict[str, list[WindowItem]] = {level: [] for level in LEVELS}
        self._counter = tokenizer or CEILING

    @property
    def current_token_count(self) -> int:
        """Tokens in use."""
        return sum(path.tokens for path in chain.from_iterable(self.context.values()))

    def add_path(self, path: Mapping[str, Any] | Path, priority: str = "medium") -> bool:
        """Take a path in, in place of less important ones if need be; False, and no change, when it
        cannot fit.

        A level is named `high` or `high_priority`; an unknown one is medium. Only what is missing
        is made free: from the lowest level up to the path's own, the least reliable first, among
        equals the oldest.
        """
        level_name = priority.removesuffix("_priority")
        level = level_name if level_name in LEVELS else "medium"
        text = describe(path)
        entry = WindowItem(
            text,
            self._counter.count(text + _BETWEEN),
            reliability_of(path),
        )
        spare = self.available_tokens - self.current_token_count
        leaving = self._find_leaving(entry.tokens - spare, level)

        if leaving is None:
            return False

        for name, entries in self.context.items():
            self.context[name] = [path for path in entries if id(path) not in leaving]

        self.context[level].append(entry)
        return True

    def fits(self, text: str) -> bool:
        """Whether a text would fit without anything leaving."""
        tokens = self._counter.count(text + _BETWEEN)
        return self.current_token_count + tokens <= self.available_tokens

    def get_formatted_context(self) -> str:
        """All of it: the lesser half of the high level, then medium and low, then the better half
        of high, best last.

        Models attend to both ends of a long context and lose its middle.
        """
        high = sorted(
            self.context["high"],
            key=lambda entry: entry.reliability,
        )
        half = len(high) // 2
        entries = [*high[:half], *self.context["medium"], *self.context["low"], *high[half:]]
        return _BETWEEN.join(entry.text for entry in entries)

    def summarize_context(self, model_processor: object = None) -> str:
        """The context in fewer words, by a model if it can `summarize`; never longer than the
        context itself.

        Without a model: the high level in full, the first sentence of each medium item, how many
        low ones there are.
        """
        full = self.get_formatted_context()
        summarize = getattr(model_processor, "summarize", None)

        if summarize is None:
            summary: str = self._shorten()
        else:
            summary = summarize(full)

        if len(summary) > len(full) or self._counter.count(summary) > self._counter.count(full):
            return full

        return summary if summary.strip() else full

    def _shorten(self) -> str:
        parts = [entry.text for entry in self.context["high"]]
        parts += [first_sentence(entry.text) for entry in self.context["medium"]]
        if number := len(self.context["low"]):
            parts.append(f"Additional {number} background context items available.")

        return _BETWEEN.join(parts)

    def _find_leaving(self, missing: int, level: str) -> set[int] | None:
        """The items that must go so that `missing` tokens are free; None when there are not enough
        of them.
        """
        leaving: set[int] = set()
        for name in reversed(LEVELS[LEVELS.index(level) :]):
            for entry in sorted(self.context[name], key=lambda entry: entry.reliability):
                if missing <= 0:
                    return leaving

                leaving.add(id(entry))
                missing -= entry.tokens

        return leaving if missing <= 0 else None


MAX_HIERARCHY_TOKENS = 300
TEMPLATE = """\
Hierarchy context (HiRAG):
- Topic ▸ Subtopic ▸ Section summaries:{hierarchy}

Relational paths (PathRAG):
{paths}

Instructions: Answer using only the information in these paths. Cite path # and node ids."""


def format_path_prompt(
    paths: Sequence[str | Mapping[str, Any] | Path],
    hierarchy_summary: str,
    *,
    tokenizer: TokenCounter | None = None,
) -> str:
    """The paths, numbered by their places from 1, under the hierarchy's summary, which is held to
    its tokens.

    A path that is longer than its own limit is left out: cut in the middle it would say something
    else.
    """
    counter = tokenizer or CEILING

    lines = {}
    for place, path in enumerate(paths, 1):
        lines[place] = _with_ids(counter, path)

    fitting = {}
    for place, line in lines.items():
        if counter.count(line) <= MAX_PATH_TOKENS:
            fitting[place] = line

    return fill(
        list(fitting.values()),
        short_summary(counter, hierarchy_summary),
        list(fitting),
    )


def fill(
    lines: Sequence[str],
    summary: str,
    numbers: Sequence[int] | None = None,
) -> str:
    """The template with these path lines and this summary; lines are numbered from 1 unless
    `numbers` are given.
    """
    places = numbers or range(1, len(lines) + 1)
    numbered = "\n".join(f"{number}) {line}" for number, line in zip(places, lines, strict=True))
    return TEMPLATE.format(
        hierarchy=f" {summary}" if summary else "",
        paths=numbered,
    )


def short_summary(
    counter: TokenCounter,
    summary: str,
    tokens: int = MAX_HIERARCHY_TOKENS,
) -> str:
    """The lines of a summary that fit, the first that does not fit cut."""
    fitting: list[str] = []
    for line in filter(None, (raw_line.strip() for raw_line in summary.splitlines())):
        if counter.count("\n".join([*fitting, line])) > tokens:
            if fitting:
                spare = tokens - counter.count("\n".join([*fitting, ""]))
            else:
                spare = tokens

            cut = shorten(counter, line, spare)
            if cut and counter.count("\n".join([*fitting, cut])) <= tokens:
                fitting.append(cut)

            break

        fitting.append(line)

    return "\n".join(fitting)


def format_paths_for_prompt(
    paths: Sequence[Mapping[str, Any] | Path],
    query: str,
    *,
    max_tokens: int = 4096,
    reserve_tokens: int = 512,
    tokenizer: TokenCounter | None = None,
) -> str:
    """The query, then the paths from the least to the most reliable, which stands last under its
    own heading.

    The budget is the window's: what does not fit is left out, the least reliable first. A query
    that alone exceeds it is a mistake of the caller and refused.
    """
    window = WindowSize(max_tokens, reserve_tokens)
    return _fill_window(
        paths,
        (),
        query,
        window,
        tokenizer or CEILING,
    ).prompt


@dataclass(frozen=True)
class _WindowPrompt:
    """A prompt for a reader's window, and the paths and passages that it holds."""

    prompt: str
    paths: tuple[Any, ...]
    passages: tuple[CitedPassage, ...]


def _fill_window(
    paths: Sequence[Mapping[str, Any] | Path],
    passages: Sequence[CitedPassage],
    query: str,
    size: WindowSize,
    counter: TokenCounter,
) -> _WindowPrompt:
    """The query, then passages and paths, each from the worst to the best; both are taken in turns,
    the best path first.
    """
    head = f"Query: {query}\n\nRelevant information:\n\n"
    window = ContextWindowManager(
        size.max_tokens,
        size.reserve_tokens,
        counter,
    )

    if not window.fits(head):
        raise ValueError(
            f"the query takes {counter.count(head)} of {window.available_tokens} tokens; shorten "
            "it or raise max_tokens"
        )

    window.add_path({"text": head}, "high")
    held_paths: list[Any] = []
    held_passages: list[CitedPassage] = []
    path_blocks: list[str] = []
    passage_blocks: list[str] = []
    best_first = sorted(
        paths,
        key=reliability_of,
        reverse=True,
    )

    for path, passage in zip_longest(best_first, passages):
        if path is not None:
            block = _block(path, is_best=not path_blocks)
            if window.fits(block):
                window.add_path({"text": block})
                path_blocks.append(block)
                held_paths.append(path)

        if passage is not None:
            line = _passage_line(counter, passage, 0).text
            block = f"Passage {len(paths) + passage.rank}: {line}\n"
            if window.fits(block):
                window.add_path({"text": block})
                passage_blocks.append(block)
                held_passages.append(passage)

    blocks = (*reversed(passage_blocks), *reversed(path_blocks))
    return _WindowPrompt(
        head + "\n".join(blocks),
        tuple(held_paths),
        tuple(held_passages),
    )


def _block(path: Mapping[str, Any] | Path, *, is_best: bool) -> str:
    first, *details = describe(path).splitlines() or [""]
    heading = MOST_RELEVANT if is_best else "Path"
    lines = [f"{heading} ({reliability_of(path):.2f}): {first}", *details, ""]
    return "\n".join(lines)


def _with_ids(
    counter: TokenCounter,
    path: str | Mapping[str, Any] | Path,
    number: str = "",
) -> str:
    """The path in one line, with the ids of its nodes where it has them and they fit beside it and
    its number.
    """
    if isinstance(path, str):
        return " ".join(path.split())

    line = " ".join(describe(path).split())
    if isinstance(path, Mapping):
        nodes: Any = path.get("nodes")
    else:
        nodes = path.nodes

    if not nodes:
        return line

    full = line + cite(node["id"] if isinstance(node, Mapping) else node.id for node in nodes)
    if counter.count(number + full) <= MAX_PATH_TOKENS:
        return full

    return line


@dataclass(frozen=True)
class PackedPrompt:
    """What was taken, best first, and the prompt that holds it.

    Numbers in the prompt are ranks of the result: path 3 is the third path, and passages are
    numbered on from the last path. `trimmed` counts what was left out or cut; `tokens` are those of
    the prompt and of its two parts.
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
    """At most `final_context` paths and passages, both given best first, in turns; the best path
    stands last.

    A passage stands among the paths as `title --[contains; snippet: "..."]--> id`, with the same
    limit. The hierarchy may take a third of the prompt at most. A budget that cannot hold the empty
    frame gives an empty prompt.
    """
    frame = tokenizer.count(fill([], ""))
    room = prompt_tokens - frame
    offered = len(paths) + len(passages) + len(hierarchy)

    if room < 0:
        nothing = {
            "prompt": 0,
            "hierarchy": 0,
            "paths": 0,
        }
        return PackedPrompt(
            "",
            (),
            (),
            (),
            tokens=nothing,
            trimmed=offered,
        )

    topics, summary = _list_topics(
        tokenizer,
        hierarchy,
        min(MAX_HIERARCHY_TOKENS, room // 3),
    )
    if summary:
        room -= tokenizer.count(f" {summary}")

    window = ContextWindowManager(room, 0, tokenizer)
    lines: list[_Line] = []
    for line in _in_turns(tokenizer, paths, passages):
        if len(lines) == final_context:
            break

        numbered = NUMBER + line.text
        if tokenizer.count(numbered) <= MAX_PATH_TOKENS and window.fits(numbered):
            window.add_path({"text": numbered})
            lines.append(line)

    prompt = _render(lines, summary, len(paths))
    # Too long only where a tokenizer does not add up.
    while tokenizer.count(prompt) > prompt_tokens and (lines or summary):
        if lines:
            lines.pop()
        else:
            topics = ()
            summary = ""

        prompt = _render(lines, summary, len(paths))

    body = "\n".join(line.text for line in _reading_order(lines))
    tokens = {
        "prompt": tokenizer.count(prompt),
        "hierarchy": tokenizer.count(summary),
        "paths": tokenizer.count(body),
    }
    cut_count = sum(line.is_cut for line in lines)
    return PackedPrompt(
        prompt=prompt,
        paths=tuple(paths[line.place] for line in lines if line.is_path),
        passages=tuple(passages[line.place] for line in lines if not line.is_path),
        hierarchy=topics,
        tokens=tokens,
        trimmed=offered - len(lines) - len(topics) + cut_count,
    )


def pack_window(
    packed: PackedPrompt,
    query: str,
    paths: Sequence[Path],
    passages: Sequence[CitedPassage],
    window: WindowSize,
    tokenizer: TokenCounter,
) -> PackedPrompt:
    """The same result with a prompt of the question and what of the passages and paths fits the
    window, the most reliable path last; empty where nothing was found.
    """
    filled = _fill_window(
        paths,
        passages,
        query,
        window,
        tokenizer,
    )
    prompt = filled.prompt if paths or passages else ""
    tokens = tokenizer.count(prompt)
    return replace(
        packed,
        prompt=prompt,
        paths=filled.paths,
        passages=filled.passages,
        tokens={
            "prompt": tokens,
            "hierarchy": 0,
            "paths": tokens,
        },
    )


@dataclass(frozen=True)
class _Line:
    """A path or passage as one line of the prompt, without its number; `place` is where it stood in
    the question.
    """

    text: str
    is_path: bool
    place: int
    is_cut: bool = False


def _in_turns(
    counter: TokenCounter,
    paths: Sequence[Path],
    passages: Sequence[CitedPassage],
) -> Iterator[_Line]:
    """A path, a passage, a path, ..., each written when it is asked for."""
    for place, (path, passage) in enumerate(zip_longest(paths, passages)):
        if path is not None:
            yield _Line(_with_ids(counter, path, NUMBER), True, place)
        if passage is not None:
            yield _passage_line(counter, passage, place)


def _passage_line(
    counter: TokenCounter,
    passage: CitedPassage,
    place: int,
) -> _Line:
    """The passage as an edge from its title; its text is cut to what the line leaves it."""
    title = (
        shorten(
            counter,
            plain(passage.title),
            MAX_PATH_TOKENS // 4,
        )
        or "document"
    )
    text = plain(passage.text.removeprefix(passage.title)).replace('"', "'")
    opening = f'{title} --[contains; snippet: "'
    closing = f'"]--> {passage.id}'
    snippet = shorten(
        counter,
        text,
        MAX_PATH_TOKENS - counter.count(NUMBER + opening + closing),
    )
    return _Line(
        opening + snippet + closing,
        False,
        place,
        is_cut=snippet != text,
    )


def _list_topics(
    counter: TokenCounter,
    topics: Sequence[Topic],
    tokens: int,
) -> tuple[tuple[Topic, ...], str]:
    """The topics, super-topics first, a line each, as many as fit."""
    ordered = sorted(
        (topic for topic in topics if topic.summary.strip()),
        key=lambda topic: -topic.level,
    )
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


def _render(
    lines: Sequence[_Line],
    summary: str,
    paths: int,
) -> str:
    """The prompt: a path has its rank for a number; passages are numbered on from the last of all
    `paths`.
    """
    order = _reading_order(lines)

    numbers = []
    for line in order:
        numbers.append(line.place + 1 if line.is_path else paths + line.place + 1)

    return fill(
        [line.text for line in order],
        summary,
        numbers,
    )
