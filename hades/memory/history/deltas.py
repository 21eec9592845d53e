"""Content as what changed since the parent: pieces added, and a recipe that copies the rest; always exact.

The recipe is text, `digest =12 -3 +5`: keep twelve characters of the parent, leave out three, take five of the pieces.
The pieces stand apart, one to a line, in the row's `content`, where full-text search finds the words that a version
brought. The digest is of the whole content, so a chain that does not rebuild it is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import blake2b

from hades.errors import StoreDamaged

WHOLE = "* "  # stands before the recipe of a row whose content is still whole
_TOKEN = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")  # a blank belongs to its word: alone it would match everywhere
_BLANK = re.compile(r"\s+")
_FINE_TOKENS = 1_500  # beyond it, words are not compared one by one: the search is quadratic
_BETWEEN = "\n"


@dataclass(frozen=True)
class Delta:
    """A recipe and the pieces it takes."""

    recipe: str
    pieces: str

    @property
    def size(self) -> int:
        """Characters it takes to keep it."""
        return len(self.recipe) + len(self.pieces)


def delta_between(parent: str, content: str) -> Delta:
    """How to make the content from its parent."""
    steps: list[str] = []
    pieces: list[str] = []
    for kept, dropped, added in _merge(_changes(parent, content)):
        if kept:
            steps.append(f"={kept}")
        if dropped:
            steps.append(f"-{dropped}")
        if added:
            steps.append(f"+{len(added)}")
            pieces.append(added)
    return Delta(" ".join([digest_of(content), *steps]), _BETWEEN.join(pieces))


def rebuilt(parent: str, delta: Delta, what: str = "a delta") -> str:
    """The content the delta was made of, or `StoreDamaged` when parent, recipe or pieces are not what they were."""
    expected, *steps = delta.recipe.split(" ")
    made: list[str] = []
    at = taken = 0
    for step in steps:
        count = int(step[1:])
        if step[0] == "+":
            made.append(delta.pieces[taken : taken + count])
            taken += count + len(_BETWEEN)
        else:
            if step[0] == "=":
                made.append(parent[at : at + count])
            at += count
    content = "".join(made)
    if digest_of(content) != expected:
        raise StoreDamaged(f"{what} does not rebuild its content; restore a backup of the store")
    return content


def pieces_of(content: str, recipe: str) -> str:
    """The pieces a recipe takes, cut out of the whole content it makes."""
    pieces: list[str] = []
    at = 0
    for step in recipe.split(" ")[1:]:
        count = int(step[1:])
        if step[0] == "+":
            pieces.append(content[at : at + count])
        if step[0] != "-":
            at += count
    return _BETWEEN.join(pieces)


def digest_of(content: str) -> str:
    """A short hash of the content."""
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _changes(parent: str, content: str) -> Iterator[tuple[int, int, str]]:
    """(kept, dropped, added) from the start on: equal ends are cut off, lines compared, then words of changed lines."""
    head = _share(parent, content)
    while head and not content[head - 1].isspace():  # words are not cut: what is added stays readable and findable
        head -= 1
    tail = _share(parent[head:][::-1], content[head:][::-1])
    blank = _BLANK.search(content, len(content) - tail)
    tail = len(content) - blank.end() if blank else 0
    yield head, 0, ""
    old, new = parent[head : len(parent) - tail], content[head : len(content) - tail]
    for tag, a, b in _compare(old.splitlines(keepends=True), new.splitlines(keepends=True)):
        if tag == "equal":
            yield len(a), 0, ""
        else:
            yield from _by_word(a, b)
    yield tail, 0, ""


def _by_word(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if not before or not after or max(len(before), len(after)) > _FINE_TOKENS:
        yield 0, len(old), new
        return
    for tag, a, b in _compare(before, after):
        yield (len(a), 0, "") if tag == "equal" else (0, len(a), b)


def _compare(old: list[str], new: list[str]) -> Iterator[tuple[str, str, str]]:
    for tag, a_start, a_end, b_start, b_end in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        yield tag, "".join(old[a_start:a_end]), "".join(new[b_start:b_end])


def _merge(changes: Iterator[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Neighbouring steps as one; a copied blank between two changes costs more than it saves."""
    kept, dropped, added = 0, 0, ""
    for keep, drop, add in changes:
        if keep and (dropped or added):
            yield kept, dropped, added
            kept, dropped, added = 0, 0, ""
        kept += keep
        dropped += drop
        added += add
    yield kept, dropped, added


def _share(one: str, other: str) -> int:
    """How many characters both begin with, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
