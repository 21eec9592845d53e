"""Many texts in two arrays: where each ends, and all their bytes one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hades.snapshot.arrays import Folder


class ArrayReader(Protocol):
    """Whoever hands out arrays by name."""

    def __getitem__(self, name: str, /) -> NDArray[Any]:
        """The array of that name."""
        ...


class HeapWriter:
    """Appends texts. The arrays are `<name>.ends` (int64, first one 0) and `<name>.text`."""

    def __init__(self, folder: Folder, name: str) -> None:
        self._ends = folder.column(f"{name}.ends", np.int64)
        self._text = folder.column(f"{name}.text", np.uint8)
        self._ends.append(np.zeros(1, np.int64))
        self.count = 0

    def append(self, texts: Iterable[str]) -> None:
        """Write more texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.append_bytes(np.fromiter(map(len, encoded), np.int64, len(encoded)), b"".join(encoded))

    def append_bytes(self, lengths: NDArray[np.int64], joined: Any) -> None:
        """Write texts that are joined already; `lengths` are in bytes."""
        if len(lengths):
            self._ends.append(self._text.rows + np.cumsum(lengths, dtype=np.int64))
            self._text.append(np.frombuffer(joined, np.uint8))
            self.count += len(lengths)


class Heap:
    """Reads texts by their place."""

    def __init__(self, arrays: ArrayReader | Mapping[str, NDArray[Any]], name: str) -> None:
        self._ends: NDArray[np.int64] = arrays[f"{name}.ends"]
        self._text = arrays[f"{name}.text"].data  # a piece of it is cut faster than one of an array

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return str(self._text[self._ends[place] : self._ends[place + 1]], "utf-8", "surrogatepass")

    def raw(self, place: int) -> bytes:
        """The bytes of one text."""
        return bytes(self._text[self._ends[place] : self._ends[place + 1]])

    def size(self, place: int) -> int:
        """How many bytes one text has."""
        return int(self._ends[place + 1] - self._ends[place])

    def slice(self, place: int, start: int, end: int) -> str:
        """Bytes [start, end) of one text, where each byte is a character."""
        first = int(self._ends[place])
        return str(self._text[first + start : first + end], "ascii")

    def many(self, places: NDArray[np.integer[Any]]) -> list[str]:
        """The texts at these places."""
        starts, ends = self._ends[places].tolist(), self._ends[places + 1].tolist()
        pieces = zip(starts, ends, strict=True)
        return [str(self._text[start:end], "utf-8", "surrogatepass") for start, end in pieces]
