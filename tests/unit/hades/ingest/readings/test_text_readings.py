"""The reading of a text is a function of that text alone."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hades.ingest.entities.text_readings import (
    ACRONYM,
    TextReadings,
    join_readings,
    pack_readings,
    read_bytes,
    read_texts,
    take_texts,
    unpack_readings,
)
from hades.ingest.workers import from_bytes, to_bytes

PHRASES = st.sampled_from(
    (
        "Ada Lovelace", "wrote to", "Charles Babbage.", "support vector machine (SVM)", "SVMs", "are", '"The Kid"',
        "New York and Chicago", "J. Smith", "sklearn.svm.SVC", "of", "the", "Zürich", "1999", "\n", "- ", "He said:",
    )
)  # fmt: skip
TEXTS = st.lists(st.lists(PHRASES, max_size=8).map(" ".join), max_size=6)


def assert_same(one: TextReadings, other: TextReadings) -> None:
    for field in fields(TextReadings):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if isinstance(here, pa.Array):
            assert here.to_pylist() == there.to_pylist(), field.name
        else:
            assert here.dtype == there.dtype, field.name
            assert here.tolist() == there.tolist(), field.name


@given(TEXTS, TEXTS, TEXTS)
def test_readings_of_parts_join_to_the_reading_of_all(one: list[str], two: list[str], three: list[str]) -> None:
    assert_same(join_readings([read_texts(one), read_texts(two), read_texts(three)]), read_texts([*one, *two, *three]))


@given(TEXTS, st.lists(st.integers(0, 5), max_size=8))
def test_readings_that_are_taken_are_those_of_the_texts_alone(texts: list[str], chosen: list[int]) -> None:
    rows = [row for row in chosen if row < len(texts)]
    taken = take_texts(read_texts(texts), np.array(rows, dtype=np.int64))
    assert_same(taken, read_texts([texts[row] for row in rows]))


@given(TEXTS)
def test_packed_readings_are_the_same(texts: list[str]) -> None:
    read = read_texts(texts)
    assert_same(unpack_readings(from_bytes(to_bytes(pack_readings(read)))), read)
    sent = to_bytes(pa.table({"text": pa.array(texts, pa.string())}))
    assert_same(unpack_readings(from_bytes(read_bytes(sent))), read)


def test_an_acronym_at_the_end_of_a_text_is_explained_whichever_text_comes_last() -> None:
    texts = ["We train a support vector machine (SVM).", "Nothing is explained here."]
    for order in (texts, texts[::-1]):
        read = read_texts(order)
        assert (read.rule == ACRONYM).sum() == 1
