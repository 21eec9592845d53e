"""Names by their words: many at once are the same as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.known_names import PlainNames

LETTERS = ("graph", "of", "words", "learning")
SPELLED = st.lists(st.lists(st.integers(0, len(LETTERS) - 1), min_size=1, max_size=4), max_size=6)


@given(SPELLED, st.data())
def test_names_taken_together_are_the_names_one_by_one(spelled: list[list[int]], data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, spelled)])
    names = PlainNames(LETTERS, np.array([word for name in spelled for word in name], dtype=np.int32), offsets)
    assert list(names) == [names[row] for row in range(len(spelled))]
    assert list(names) == [tuple(LETTERS[word] for word in name) for name in spelled]
    rows = data.draw(st.lists(st.integers(0, len(spelled) - 1), max_size=8)) if spelled else []
    assert names.take(np.array(rows, dtype=np.int64)) == [names[row] for row in rows]
