"""What a model is told: paths with a short ledger of topics above them, and to answer from nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hades.retrieval.answer.context_window import ContextWindowManager
from hades.retrieval.answer.path_text import MAX_PATH_TOKENS, WrittenPath, describe, reliability_of
from hades.retrieval.answer.token_bound import CEILING, TokenCounter, shorten

MAX_HIERARCHY_TOKENS = 300
TEMPLATE = """\
Hierarchy context (HiRAG):
- Topic ▸ Subtopic ▸ Section summaries:{hierarchy}

Relational paths (PathRAG):
{paths}

Instructions: Answer using only the information in these paths. Cite path # and node ids."""


def format_path_prompt(
    paths: Sequence[str | Mapping[str, Any] | WrittenPath],
    hierarchy_summary: str,
    *,
    tokenizer: TokenCounter | None = None,
) -> str:
    """The paths in the order given, numbered from 1, under the hierarchy's summary, which is held to its tokens.

    A path that is longer than its own limit is left out: cut in the middle it would say something else.
    """
    counter = tokenizer or CEILING
    lines = [_one_line(path) for path in paths]
    counts = counter.count_many(lines)
    kept = [line for line, count in zip(lines, counts, strict=True) if count <= MAX_PATH_TOKENS]
    return fill(kept, short_summary(counter, hierarchy_summary))


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
    paths: Sequence[Mapping[str, Any] | WrittenPath],
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


def _block(path: Mapping[str, Any] | WrittenPath, *, is_best: bool) -> str:
    first, *details = describe(path).splitlines() or [""]
    heading = "Most relevant path" if is_best else "Path"
    return "".join(f"{line}\n" for line in (f"{heading} ({reliability_of(path):.2f}): {first}", *details))


def _one_line(path: str | Mapping[str, Any] | WrittenPath) -> str:
    return " ".join((path if isinstance(path, str) else describe(path)).split())
