"""Several looks at memory: a first context, then closer ones at what the reader asks for, a bounded number of times."""

from __future__ import annotations

import re
from collections.abc import Callable

from hades.memory.history.names import MemoryRefused, UnknownMemory
from hades.memory.history.reader import Reader
from hades.memory.recall.context import MAX_TOKENS, Context, retrieve_within_budget
from hades.ports.text import LanguageModel, Tokenizer

MAX_PASSES = 3
DRILL_DOWN_TOKENS = 40_000
_ASKS = re.compile(r"^\s*MORE:\s*(.+?)\s*$", re.MULTILINE)
_MAX_TOKENS = 100

Needs = Callable[[Context], str | None]  # a topic or a summary that is wanted in detail, or nothing

PROMPT = """{context}

Question: {query}
If the context above answers the question, write DONE. If the detail of one topic or summary in it is missing, write
MORE: and its name as it stands in brackets, nothing else.
"""


def retrieve_in_passes(
    reader: Reader,
    tokenizer: Tokenizer,
    query: str,
    needs: Needs,
    *,
    max_tokens: int = MAX_TOKENS,
    max_passes: int = MAX_PASSES,
) -> list[Context]:
    """The contexts of each pass, the first the widest; ends when nothing more is wanted, or known, or allowed."""
    if max_passes < 1:
        raise MemoryRefused(f"max_passes is {max_passes}; at least one look is needed")
    contexts = [retrieve_within_budget(reader, tokenizer, query, max_tokens)]
    asked: set[str] = set()
    while len(contexts) < max_passes:
        wanted = needs(contexts[-1])
        if wanted is None or wanted in asked:
            break
        asked.add(wanted)
        room = min(DRILL_DOWN_TOKENS, max_tokens)
        try:
            contexts.append(retrieve_within_budget(reader, tokenizer, query, room, focus=[wanted]))
        except UnknownMemory:
            break  # it named something that memory does not hold; what was found stands
    return contexts


def needs_by(model: LanguageModel) -> Needs:
    """Let a language model say what it misses."""

    def needs(context: Context) -> str | None:
        prompt = PROMPT.format(context=context.text, query=context.query)
        said = _ASKS.search(model.complete(prompt, max_tokens=_MAX_TOKENS).text)
        return said[1].strip("[]").split(",")[0].strip() if said else None

    return needs
