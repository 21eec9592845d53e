"""Code blocks, lists and tables stay whole with the line that introduces them, where they fit into
a chunk.
"""

from __future__ import annotations

from typing import Any

import pytest

from hades.ingest.chunks import ChunkedText, chunk_rows, find_blocks
from hades.ingest.parsers.facts import Section
from hades.providers.tokens import MiniLmTokenizer
from schemas.nodes import ChunkKind

PROSE = " ".join(f"Sentence {number} says little." for number in range(8))
CODE = "```python\nimport reader\n\nreader.open(1)\nreader.close(1)\n```"
LIST = "- one, which is short.\n- two. With a second sentence.\n\n  And a paragraph.\n- three"
TABLE = "| a | b |\n|---|---|\n| 1. | 2. |\n| 3. | 4. |"


def rows(text: str, max_tokens: int) -> list[Any]:
    document = ChunkedText("d", "", text, [Section(0, len(text), ChunkKind.PROSE)])
    return chunk_rows([document], MiniLmTokenizer(), max_tokens)


def cut(text: str, max_tokens: int) -> list[str]:
    return [row["text"] for row in rows(text, max_tokens)]


@pytest.mark.parametrize(
    ("said", "block"), [("so:", CODE), ("so:", LIST), ("so:", TABLE), ("like this.", CODE)]
)
def test_a_block_stays_whole_with_its_introduction(said: str, block: str) -> None:
    text = f"{PROSE}\n\nUse it {said}\n\n{block}\n\n{PROSE}"
    pieces = cut(text, 60)
    assert len(pieces) > 1
    assert [piece for piece in pieces if f"Use it {said}\n\n{block}" in piece]


def test_a_list_longer_than_a_chunk_is_cut_between_its_items() -> None:
    text = "\n".join(
        f"- item {number} is here.\n  It goes on. Then it ends." for number in range(20)
    )
    assert all(piece.startswith("- item") for piece in cut(text, 50))


@pytest.mark.parametrize("block", [CODE, LIST])
def test_a_long_introduction_is_cut_between_its_sentences(block: str) -> None:
    long = "\n".join(
        f"This sentence of the introduction goes\nover two lines, number {number}."
        for number in range(30)
    )
    pieces = cut(f"{long}\nUse it so:\n\n{block}\n\n{PROSE}", 60)
    assert all(piece.startswith(("This sentence", "Use it so:", "Sentence")) for piece in pieces)
    assert [piece for piece in pieces if f"Use it so:\n\n{block}" in piece]


def test_an_item_longer_than_a_chunk_is_cut_between_its_sentences() -> None:
    said = " ".join(
        f"This sentence of the item goes\n  over two lines, number {number}."
        for number in range(30)
    )
    assert all(
        piece.startswith(("- ", "This sentence")) for piece in cut(f"- one\n- {said}\n- three", 60)
    )


def test_code_longer_than_a_chunk_is_cut_between_its_lines() -> None:
    text = "```\n" + "\n".join(f"call_number_{number}(a.b, c.d)" for number in range(40)) + "\n```"
    assert all(piece.endswith((")", "```")) for piece in cut(text, 50))


def test_a_chunk_says_that_it_begins_inside_code() -> None:
    lines = "\n".join(f"setting_{number}: {number}" for number in range(40))
    found = rows(f"{PROSE}\n\n```yaml\n{lines}\n```\n\n{PROSE}\n\n{PROSE}", 60)
    begins = [row["kind"] for row in found]
    inside = [row["text"].startswith("setting_") for row in found]
    assert sum(inside) > 1
    assert begins == [ChunkKind.LISTING if one else ChunkKind.PROSE for one in inside]


def test_an_item_goes_on_in_lines_that_are_not_indented() -> None:
    text = "- one goes\non here.\n- two goes\non there."
    assert find_blocks(f"{text}\n\n{PROSE}") == [(0, len(text) + 1)]


def test_plain_prose_has_no_blocks() -> None:
    assert find_blocks(f"{PROSE}\n\nIt follows:\n{PROSE}") == []
