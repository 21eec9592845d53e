"""Fitted files: each says how it was fitted, and its numbers fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from hades.retrieval.code.search import fitted_trees
from hades.retrieval.core.words import fitted_file, fusion_model

NAMES = sorted(
    path.name.removesuffix(".json") for path in files("models").joinpath("fitted").iterdir()
)


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from numbers_in(one)
    elif isinstance(value, int | float):
        yield value


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_how_it_was_fitted_and_holds_numbers(name: str):
    body = fitted_file(name)
    assert {"version", "data_sha256", "metric", "command"} <= body.keys()
    assert "benchmarks" in body["command"]
    assert not np.isnan(
        list(numbers_in(body))
    ).any()  # a branch of a tree that ends early is infinite


def test_lines_and_trees_have_a_number_for_each_of_their_columns():
    for line in (fusion_model().look, fusion_model().rank, fusion_model().last):
        assert line.plain.shape == line.told.shape == (len(line.columns),)
    trees = fitted_trees()
    assert trees.column.shape == trees.threshold.shape
    assert trees.value.shape == (len(trees.column), trees.column.shape[1] + 1)
    assert trees.column.max() < len(trees.columns)


def test_told_corpora_have_weights_of_their_own():
    line = fusion_model().look
    columns = {name: np.arange(3.0) for name in line.columns}
    assert not np.allclose(line.score(columns, 0.0), line.score(columns, 1.0))
    half = (line.score(columns, 0.0) + line.score(columns, 1.0)) / 2
    assert np.allclose(line.score(columns, 0.5), half)
