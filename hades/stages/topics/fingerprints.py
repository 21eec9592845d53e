"""What an entity's place was decided from, as one number: when it differs, the entity is placed again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from models.hierarchy.arrays import Vectors

BLOCK = 4096
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def key_hashes(keys: Sequence[str]) -> np.ndarray:
    """(n,) uint64, the same for the same key in every run."""
    joined = b"".join(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(joined, np.uint64)


def basis_of(
    vectors: Vectors, hashes: np.ndarray, tails: np.ndarray, heads: np.ndarray, kinds: np.ndarray, strength: np.ndarray
) -> list[str]:
    """For each entity a hash of its vector and of its relations with their types, strengths and other ends."""
    around = np.zeros(len(hashes), np.uint64)
    said = _mix(kinds + strength.astype(np.float32).view(np.uint32).astype(np.uint64) * _ODD)
    for here, there in ((tails, heads), (heads, tails)):
        np.add.at(around, here, _mix(hashes[there] ^ said))  # a sum: the order of relations does not matter
    return [f"{value:016x}" for value in _mix(_vector_hashes(vectors) + _mix(around) * _ODD).tolist()]


def _vector_hashes(vectors: Vectors) -> np.ndarray:
    factors = _mix(np.arange(1, vectors.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.zeros(len(vectors), np.uint64)
    for start in range(0, len(vectors), BLOCK):
        bits = np.ascontiguousarray(vectors[start : start + BLOCK]).view(np.uint32).astype(np.uint64)
        found[start : start + BLOCK] = (bits * factors).sum(axis=1)
    return found


def _mix(values: np.ndarray) -> np.ndarray:
    """Every bit of the input in every bit of the output (the finaliser of SplitMix64)."""
    values = (values + _ODD).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    mixed: np.ndarray = values ^ (values >> np.uint64(31))
    return mixed
