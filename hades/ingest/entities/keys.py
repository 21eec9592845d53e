"""Keys by the hundred thousand: the same letters as `schemas.ids` gives one by one, in a fraction of the time.

Tests hold every function here against the one it speeds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from hades.ingest.readings.signatures import Signatures
from hades.text.arrays import Longs
from schemas.ids import entity_key

_LONGEST_SLUG = 80
_KEY_LETTERS = 25  # of an edge
_PLAIN = {code: chr(code) if chr(code).isalnum() else " " for code in range(128)}


def entity_keys(names: Iterable[tuple[str, str, str]]) -> list[str]:
    """`schemas.ids.entity_key` of every (name, type, qualifier)."""
    return [
        _ascii_key(name, kind, qualifier) if name.isascii() else entity_key(name, kind, qualifier)
        for name, kind, qualifier in names
    ]


def _ascii_key(name: str, kind: str, qualifier: str) -> str:
    lower = name.lower()
    words = lower.split(" ")
    if all(map(str.isalnum, words)):  # letters and digits with one space between words, as most names are
        folded = "_".join(words)
        exact = len(folded) <= _LONGEST_SLUG
    else:
        folded = "_".join(lower.translate(_PLAIN).split())
        exact = "_" not in name and folded == lower.replace(" ", "_") and len(folded) <= _LONGEST_SLUG
    if exact and folded and kind == "concept" and not qualifier:
        return folded
    framed = f"{len(lower)}:{lower}{len(kind)}:{kind}{len(qualifier)}:{qualifier}"
    digest = blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=13).hexdigest()
    return f"{folded[:_LONGEST_SLUG].strip('_') or 'e'}-{digest[:10]}"


@dataclass(frozen=True)
class NodeIds:
    """`_id`s by number, and the signature of each."""

    column: pa.StringArray
    signatures: Signatures

    def __len__(self) -> int:
        return len(self.column)


def find_keys(
    sources: NodeIds, source: Longs, relation: str, targets: NodeIds, target: Longs, labels: Sequence[str] | None = None
) -> pa.StringArray:
    """`edge_keys` of edges between numbered ids."""
    head, tail = np.unique(source, return_inverse=True), np.unique(target, return_inverse=True)
    framed = [
        frame(ids.column.take(pa.array(rows)).to_pylist()) for ids, rows in ((sources, head[0]), (targets, tail[0]))
    ]
    return edge_keys(framed[0], head[1], relation, framed[1], tail[1], labels)


def edge_keys(
    sources: Sequence[bytes],
    source: Longs,
    relation: str,
    targets: Sequence[bytes],
    target: Longs,
    labels: Sequence[str] | None = None,
) -> pa.Array:
    """`schemas.ids.edge_key` of every edge: the same letters (a test holds them equal) in a fraction of the time.

    `source` and `target` number the framed `_id`s; an empty label is no label.
    """
    middle = frame([relation])[0]
    heads = [head + middle for head in sources]
    pairs = zip(map(heads.__getitem__, source.tolist()), map(targets.__getitem__, target.tolist()), strict=True)
    if labels is None:
        digests = [blake2b(head + tail, digest_size=13).digest() for head, tail in pairs]
    else:
        ends = [end if label else b"" for label, end in zip(labels, frame(labels), strict=True)]
        digests = [
            blake2b(head + tail + end, digest_size=13).digest() for (head, tail), end in zip(pairs, ends, strict=True)
        ]
    letters = np.frombuffer(b"".join(digests).hex().encode(), dtype=np.uint8).reshape(-1, 26)[:, :_KEY_LETTERS]
    bounds = np.arange(0, letters.size + 1, _KEY_LETTERS, dtype=np.int32)
    buffers = (pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(letters)))
    return pa.StringArray.from_buffers(len(digests), *buffers)


def frame(parts: Sequence[str]) -> list[bytes]:
    """Each text with its length before it, as the parts of an edge's key are joined."""
    return [f"{len(part)}:{part}".encode("utf-8", "surrogatepass") for part in parts]
