"""Names of entities: every form under which one is found, as a hash with the number of its entity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.snapshot.arrays import Folder
from hades.snapshot.columns import integers
from hades.snapshot.lookup import Hashes, hash_texts
from hades.snapshot.names import normalise

Longs = NDArray[np.int64]


class NameRows:
    """Collects names of entities by number; writes `name.hash` and `name.number`, and the longest name in words."""

    def __init__(self) -> None:
        self._hashes: list[Hashes] = [np.empty(0, np.uint64)]
        self._numbers: list[Longs] = [np.empty(0, np.int64)]
        self.longest = 0

    def append(self, first_number: int, batch: pa.RecordBatch) -> None:
        """All names of consecutive entities: `name`, `canonical_name` and `aliases`."""
        numbers = np.arange(first_number, first_number + batch.num_rows, dtype=np.int64)
        aliases = batch.column("aliases")
        several = np.repeat(numbers, integers(pc.list_value_length(aliases), 0))
        plain = (batch.column(name).cast(pa.large_string()) for name in ("name", "canonical_name"))
        names = pa.concat_arrays([*plain, pc.list_flatten(aliases).cast(pa.large_string())])
        spelled = names.drop_null().dictionary_encode()
        owners = np.concatenate([numbers, numbers, several])[np.asarray(names.is_valid())]
        forms = normalise_each(spelled.dictionary).dictionary_encode()
        distinct = forms.dictionary.to_pylist()
        form = integers(forms.indices, 0)[integers(spelled.indices, 0)]
        pairs = np.unique(owners * max(1, len(distinct)) + form)
        number, form = np.divmod(pairs, max(1, len(distinct)))
        is_spelled = np.array([bool(text) for text in distinct], np.bool_)[form]
        self.longest = max([self.longest, *(text.count(" ") + 1 for text in distinct if text)])
        self._hashes.append(hash_texts(distinct)[form[is_spelled]])
        self._numbers.append(number[is_spelled])

    def write(self, folder: Folder) -> None:
        """Sorted by hash, then number."""
        hashes, numbers = np.concatenate(self._hashes), np.concatenate(self._numbers)
        order = np.lexsort((numbers, hashes))
        folder.whole("name.hash", hashes[order])
        folder.whole("name.number", numbers[order].astype(np.int32))


def normalise_each(names: pa.Array) -> pa.Array:
    """`normalise` of each name; those in ASCII, which are nearly all, as whole columns."""
    is_ascii = np.asarray(pc.string_is_ascii(names), np.bool_)
    lower = pc.ascii_lower(names)
    forms = pc.utf8_trim(pc.replace_substring_regex(lower, "[^0-9a-z_]+", " "), " ")
    others = np.flatnonzero(~is_ascii)
    if not len(others):
        return forms
    spelled = [normalise(name) for name in names.take(pa.array(others)).to_pylist()]
    return pc.replace_with_mask(forms, pa.array(~is_ascii), pa.array(spelled, forms.type))
