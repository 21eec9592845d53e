"""Signatures of 128 bits, made by array steps: two things with the same signature are taken for the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from hades.text.arrays import Flags, Hashes, Longs

_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))


@dataclass(frozen=True)
class Signatures:
    """What each thing is, as two independent numbers of 64 bits each."""

    high: Hashes
    low: Hashes

    def __len__(self) -> int:
        return len(self.high)

    def mix(self, values: Longs | Hashes) -> Signatures:
        """Signatures of these things together with a number each."""
        number = values.astype(np.uint64)
        return self.join(Signatures(number, number))

    def join(self, other: Signatures) -> Signatures:
        """Signatures of these things together with others beside them."""
        return Signatures(
            _scatter(_scatter(other.high + _SEEDS[0]) ^ self.high), _scatter(_scatter(other.low + _SEEDS[1]) ^ self.low)
        )

    def take(self, rows: Longs) -> Signatures:
        """Some of the signatures, in the order given."""
        return Signatures(self.high[rows], self.low[rows])

    def add_up(self, group: Longs, n_groups: int) -> Signatures:
        """One signature for each group of things, whatever their order; zero for a group without any."""
        sums = [np.zeros(n_groups, dtype=np.uint64) for _ in range(2)]
        for total, half in zip(sums, (self.high, self.low), strict=True):
            np.add.at(total, group, half)
        return Signatures(*sums)

    def equal(self, other: Signatures) -> Flags:
        """Which signatures are those beside them."""
        same: Flags = (self.high == other.high) & (self.low == other.low)
        return same


def join_all(parts: Iterable[Signatures]) -> Signatures:
    """The signatures of all parts, one part after the other."""
    listed = list(parts)
    return Signatures(np.concatenate([one.high for one in listed]), np.concatenate([one.low for one in listed]))


def sign_texts(texts: Iterable[str]) -> Signatures:
    """The signature of each text."""
    return sign_digests(
        b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts)
    )


def sign_digests(digests: bytes) -> Signatures:
    """The signatures that digests of 16 bytes each stand for."""
    numbers = np.frombuffer(digests, dtype=np.uint64)
    return Signatures(numbers[0::2], numbers[1::2])


def sign_numbers(values: Longs | Hashes) -> Signatures:
    """The signature of each number."""
    nothing = np.zeros(len(values), dtype=np.uint64)
    return Signatures(nothing, nothing).mix(values)


def _scatter(values: Hashes) -> Hashes:
    """Numbers whose bits depend on all bits of those given (the finaliser of splitmix64)."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
