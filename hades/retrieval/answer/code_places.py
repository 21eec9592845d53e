"""An answer about code without a language model: where to look, what stands there, and its first words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hades.text.markup import strip_markup
from schemas.answer import AnswerSentence, AnswerSource

MAX_PLACES = 3
_LONGEST = 160  # characters of what is said of a place
_DOCUMENTATION = re.compile(r"\"\"\"(.+?)\"\"\"|'''(.+?)'''|/\*\*?(.+?)\*/", re.S)
_ASIDE = re.compile(r"\s*(?:@|#|//|/\*|\*)")  # decorators and comments before a definition


def name_places(sources: Sequence[AnswerSource]) -> tuple[AnswerSentence, ...]:
    """The first functions, classes or regions of code, best first; none where the best passage is no code."""
    passages = [source for source in sources if source.kind == "passage"]
    if not passages or not passages[0].code:
        return ()
    first: dict[tuple[str, str], AnswerSource] = {}
    for source in passages:
        if source.code:
            first.setdefault((source.document, source.symbol or source.where), source)
    return tuple(_describe(source) for source in list(first.values())[:MAX_PLACES])


def _describe(source: AnswerSource) -> AnswerSentence:
    """`path:line name (kind): what its documentation says first`, or its first line where it says nothing."""
    quote = _first_line(source.text)
    said = _documentation(source.text) or " ".join(quote.split())
    name = f" {source.symbol}" if source.symbol else ""
    return AnswerSentence(
        text=f"{source.where}{name} ({source.code}): {_cut(said)}", citations=(source.number,), quote=quote
    )


def _documentation(text: str) -> str:
    """The first sentence of the first documentation, without markup; "" where there is none."""
    found = _DOCUMENTATION.search(text)
    if found is None:
        return ""
    lines = (line.strip().lstrip("*").strip() for line in next(filter(None, found.groups())).strip().split("\n"))
    paragraph = " ".join(" ".join(lines).split("  ")[0].split())
    return strip_markup(re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0])


def _first_line(text: str) -> str:
    """The line that defines something, as it stands; the first line that is not blank where none does."""
    lines = [line for line in text.split("\n") if line.strip()]
    return next((line for line in lines if not _ASIDE.match(line)), lines[0] if lines else "").strip()


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + "…"
