"""Texts that an earlier publishing analysed: the terms of each, by the hash of the text.

Cutting texts into words and stemming them is most of what publishing costs. The file beside the snapshots holds what
the last publishing met and nothing else, so words of a forgotten document leave it with the next one. It is a cache: a
missing or unreadable file, or one of another analyser, costs time and changes nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hades.text import analyzer, stemmer

DIGEST_BYTES = 16
MOST_WORDS = 32_000_000  # of one collection; the terms of a larger one are not kept


class AnalysedTexts:
    """The terms of known texts; `terms` are the names of the numbers, `hashes` what a search finds them by."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.terms: tuple[str, ...] = ()
        self.hashes: NDArray[np.uint64] = np.zeros(0, np.uint64)  # of the terms
        self._rows: dict[bytes, int] = {}
        self._ends: NDArray[np.int64] = np.zeros(1, np.int64)
        self._words: NDArray[np.int32] = np.zeros(0, np.int32)
        with suppress(OSError, ValueError, KeyError, BadZipFile):
            self._load()

    def places(self, digests: Sequence[bytes]) -> NDArray[np.int64]:
        """Where each text stands among the known ones, by its digest; -1 for one that is not known."""
        return np.array([self._rows.get(digest, -1) for digest in digests], np.int64)

    def lengths(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many words the texts at these places have."""
        return self._ends[places + 1] - self._ends[places]

    def words(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """The term of each word of the texts at these places, one text after the other."""
        lengths = self.lengths(places)
        shift = self._ends[places] - (np.cumsum(lengths) - lengths)
        found: NDArray[np.int32] = self._words[np.repeat(shift, lengths) + np.arange(int(lengths.sum()))]
        return found

    def keep(
        self,
        digests: Sequence[bytes],
        lengths: Sequence[int],
        words: NDArray[np.int32],
        terms: Sequence[str],
        hashes: NDArray[np.uint64],
    ) -> None:
        """Hold these texts from now on, with the terms that they use; nothing is written where nothing is new."""
        if len(words) > MOST_WORDS or (len(digests) == len(self._rows) and all(map(self._rows.__contains__, digests))):
            return
        is_used = np.zeros(len(terms), np.bool_)
        is_used[words] = True
        used, numbers = np.flatnonzero(is_used), np.cumsum(is_used, dtype=np.int32) - 1
        spelled = "\n".join(terms[number] for number in used.tolist()).encode()
        partial = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError), partial.open("wb") as file:
            np.savez(
                file,
                version=np.frombuffer(_version(), np.uint8),
                digests=np.frombuffer(b"".join(digests), np.uint8),
                lengths=np.array(lengths, np.int32),
                words=numbers[words].astype(np.int32),
                terms=np.frombuffer(spelled, np.uint8),
                hashes=hashes[used],
            )
            partial.replace(self._path)

    def _load(self) -> None:
        with np.load(self._path, allow_pickle=False) as held:
            if held["version"].tobytes() != _version():
                return
            flat, lengths = held["digests"].tobytes(), held["lengths"]
            self._words, spelled, hashes = held["words"], held["terms"].tobytes().decode(), held["hashes"]
        self._ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self.terms, self.hashes = (tuple(spelled.split("\n")), hashes) if spelled else ((), hashes)
        steps = range(0, len(flat), DIGEST_BYTES)
        self._rows = {flat[step : step + DIGEST_BYTES]: row for row, step in enumerate(steps)}


def digest_text(text: str) -> bytes:
    """What a text is known by."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _version() -> bytes:
    """The analyser itself: what another one made of a text is not used."""
    sources = (analyzer.__file__, stemmer.__file__, __file__)
    return hashlib.sha256(b"".join(Path(source).read_bytes() for source in sources)).digest()
