"""Fitted files: each says how it was fitted, and its numbers fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from hades.retrieval.code.search import fitted_trees
from hades.retrieval.core.words import fitted_file, shipped_ranking
from hades.retrieval.features.table import FEATURES
from models.rankings import Ranking

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


def test_trees_have_a_number_for_each_of_their_columns():
    trees = fitted_trees()
    assert trees.column.shape == trees.threshold.shape
    assert trees.value.shape == (len(trees.column), trees.column.shape[1] + 1)
    assert trees.column.max() < len(trees.columns)


def test_the_table_describes_every_feature_of_the_ranking_and_no_other():
    weighed = [
        name for look in shipped_ranking().looks for names in look.values() for name in names
    ]
    described = [feature.name for feature in FEATURES]
    assert set(weighed) == set(described)
    assert len(described) == len(set(described))
    assert all(feature.about.endswith(".") for feature in FEATURES)


def test_the_file_says_what_each_kind_gets_that_was_left_out_of_the_fit():
    figures = fitted_file("ranking")["metric"]
    kinds = {row["kind"] for row in figures.values()}
    assert {"manuals", "people", "multihop", "dated", "conversations", "languages"} <= kinds
    for row in figures.values():
        assert {"without its kind", "on all", "words", "vectors"} <= row.keys()


def test_contexts_mix_by_their_shares():
    ranking = Ranking(({"plain": {"words": 1.0}, "leads": {"words": 3.0, "named": 2.0}},))
    columns = {"words": np.array([1.0, 0.0]), "named": np.array([0.0, 1.0])}
    assert ranking.score(0, {"plain": 1.0, "leads": 0.0}, columns).tolist() == [1.0, 0.0]
    assert ranking.score(0, {"plain": 0.5, "leads": 0.5}, columns).tolist() == [2.0, 1.0]


def test_a_feature_that_counts_nowhere_need_not_be_known():
    ranking = Ranking(({"plain": {"words": 1.0}, "told": {"asks": 1.0}},))
    assert ranking.score(0, {"plain": 1.0}, {"words": np.ones(2)}).tolist() == [1.0, 1.0]
