"""Fitted files: what ships is read, and a file that does not fit is refused with what is wrong."""

from __future__ import annotations

import json
from copy import deepcopy
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from hades.retrieval.core.words import abstain_rules, fusion_model
from models.rankings import BadFit, read_fusion, read_rules


def shipped(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(files("models").joinpath("fitted", f"{name}.json").read_text("utf-8"))
    return body


def test_what_ships_is_read_and_says_how_it_was_fitted():
    model = fusion_model()
    assert set(model.about["data_sha256"]) == {"hotpotqa_train", "musique_train", "locomo", "timeqa"}
    assert model.about["command"].startswith("python benchmarks/fit_fusion.py")
    assert abstain_rules() == read_rules(shipped("abstain"))


def test_told_corpora_have_weights_of_their_own():
    line = read_fusion(shipped("fusion")).look
    columns = {name: np.arange(3.0) for name in line.columns}
    assert not np.allclose(line.score(columns, 0.0), line.score(columns, 1.0))
    half = (line.score(columns, 0.0) + line.score(columns, 1.0)) / 2
    assert np.allclose(line.score(columns, 0.5), half)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99"),
        ({"data_sha256": None}, "lacks data_sha256"),
        ({"heads": {}}, "lacks the head 'look'"),
    ],
)
def test_a_fusion_file_that_does_not_fit_is_refused(change: dict[str, Any], message: str):
    body = {name: value for name, value in {**shipped("fusion"), **change}.items() if value is not None}
    with pytest.raises(BadFit, match=message):
        read_fusion(body)


def test_a_head_with_too_few_numbers_is_refused():
    body = deepcopy(shipped("fusion"))
    body["heads"]["rank"]["told"].pop()
    with pytest.raises(BadFit, match="rank"):
        read_fusion(body)


def test_rules_without_a_signal_are_refused():
    body = deepcopy(shipped("abstain"))
    del body["with_vectors"]["held"]
    with pytest.raises(BadFit, match="with_vectors"):
        read_rules(body)
