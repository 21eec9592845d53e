"""Rows in blocks whose intermediate arrays stay in the processor's cache."""

from __future__ import annotations

BLOCK_ROWS = 32_768


def blocks_of(rows: int, block_rows: int = BLOCK_ROWS) -> list[slice]:
    """The rows in blocks, in order."""
    return [slice(start, min(start + block_rows, rows)) for start in range(0, rows, block_rows)]
