"""Codes lose nothing, cells lose little: a scan of codes is exact, a scan of cells finds nearly all of the nearest."""

from __future__ import annotations

import numpy as np
import pytest

from hades.snapshot.vectors import VectorsInCells, VectorSpace, cosines_with
from models import vector_codes as scan
from models.kernels import unit_rows
from models.vector_codes import (
    Cells,
    best_in_ranges,
    bounds,
    cells_for,
    code_question,
    code_rows,
    fit_cells,
    multiply,
    rotate,
    sign_question,
    sign_rows,
)


def clustered(count: int, dimension: int, seed: int = 3) -> np.ndarray:
    chance = np.random.default_rng(seed)
    middles = unit_rows(chance.standard_normal((60, dimension)))
    rows = middles[chance.integers(60, size=count)] + chance.standard_normal((count, dimension)) * 0.5 / dimension**0.5
    return rows.astype(np.float32) * chance.uniform(0.2, 3.0, (count, 1)).astype(np.float32)


def space(values: np.ndarray, *, coded: bool) -> VectorSpace:
    norms = np.linalg.norm(values.astype(np.float64), axis=1).astype(np.float32)
    places = np.arange(len(values), dtype=np.int32)
    arrays = {"value": values, "norm": norms, "row": places, "place": places}
    if coded:
        rows = code_rows(values, norms)
        arrays |= {"code": rows.codes, "step": rows.steps, "slack": rows.slacks}
    return VectorSpace({f"vector.c.0.{name}": array for name, array in arrays.items()}, "c", 0)


@pytest.mark.parametrize("dimension", [1, 3, 256, 384, 1024])
def test_the_cosine_of_a_code_lies_within_its_bound(dimension):
    values = clustered(200, dimension)
    norms = np.linalg.norm(values.astype(np.float64), axis=1).astype(np.float32)
    rows, asked = code_rows(values, norms), unit_rows(clustered(1, dimension, seed=9))[0]
    question = code_question(asked)
    near, off = bounds(question, multiply(rows.codes, question.parts[None])[0], rows)
    exact = (values.astype(np.float64) @ asked) / norms
    assert (np.abs(near - exact) <= off).all()
    assert off.max() < 0.05


@pytest.mark.parametrize("limit", [1, 10, 100, 499, 500, 900])
def test_a_search_by_codes_gives_the_same_rows_and_scores_as_a_comparison_with_all(limit):
    values = clustered(500, 64)
    values[100:140] = values[7]  # ties, and rows that point nowhere
    values[200:210] = 0.0
    plain, coded = space(values, coded=False), space(values, coded=True)
    for asked in unit_rows(clustered(20, 64, seed=5)):
        rows, scores = plain.nearest(asked, limit, None)
        found, worth = coded.nearest(asked, limit, None)
        assert rows.tolist() == found.tolist()
        assert scores.tolist() == worth.tolist()


@pytest.mark.parametrize("limit", [1, 10, 500])
def test_one_scan_for_several_questions_finds_what_a_scan_for_each_finds(limit):
    coded = space(clustered(500, 64), coded=True)
    asked = list(unit_rows(clustered(3, 64, seed=5)))
    for (rows, scores), one in zip(coded.nearest_each(asked, limit), asked, strict=True):
        alone, worth = coded.nearest(one, limit, None)
        assert rows.tolist() == alone.tolist()
        assert scores.tolist() == worth.tolist()


def test_the_cosine_of_a_row_is_the_same_number_however_many_are_compared():
    values = clustered(400, 48)
    norms, asked = np.linalg.norm(values, axis=1), unit_rows(clustered(1, 48, seed=5))[0]
    whole = cosines_with(values, norms, asked)
    for count in (1, 2, 7, 64):
        assert cosines_with(values[:count], norms[:count], asked).tolist() == whole[:count].tolist()


def test_cells_hold_every_vector_once_and_are_the_same_each_time():
    values = unit_rows(clustered(3000, 32))
    cells = fit_cells(lambda places: values[places], len(values), cells_for(len(values)))
    again = fit_cells(lambda places: values[places], len(values), cells_for(len(values)))
    assert sorted(cells.places.tolist()) == list(range(3000))
    assert (cells.starts[0], cells.starts[-1]) == (0, 3000)
    assert len(cells.centres) == len(cells.starts) - 1
    assert (cells.centres == again.centres).all()
    assert (cells.places == again.places).all()


@pytest.mark.parametrize("dimension", [32, 100, 384])
def test_cells_find_nearly_all_of_the_nearest(dimension):
    values = unit_rows(clustered(20_000, dimension))
    cells = fit_cells(lambda places: values[places], len(values), cells_for(len(values)))
    searched = VectorsInCells(sign_rows(values[cells.places], centres_of(cells)), cells)
    held = 0
    asked = unit_rows(clustered(50, dimension, seed=11))
    for one in asked:
        exact = np.argsort(-(values @ one), kind="stable")[:10]
        candidates = searched.candidates([one], 10)[0]
        assert len(candidates) <= 512 * max(1, 256 // dimension)
        assert candidates.tolist() == sorted(set(candidates.tolist()))
        held += len(np.intersect1d(exact, candidates))
    assert held / (10 * len(asked)) >= 0.98


def centres_of(cells: Cells) -> np.ndarray:
    return np.repeat(cells.centres, np.diff(cells.starts), axis=0)


@pytest.mark.parametrize("dimension", [1, 3, 64, 100, 384])
def test_a_rotation_keeps_lengths_and_products_and_spreads_what_lies_in_one_part(dimension):
    rows = unit_rows(clustered(40, dimension))
    turned = rotate(rows)
    assert np.allclose(turned @ turned.T, rows @ rows.T, atol=1e-5)
    if dimension >= 64:
        one = np.zeros((1, dimension), np.float32)
        one[0, dimension // 2] = 1.0
        assert np.abs(rotate(one)).max() < 0.5


@pytest.mark.parametrize("dimension", [5, 64, 100, 384])
def test_the_machine_code_keeps_the_rows_that_a_plain_reading_of_the_signs_ranks_first(dimension, monkeypatch):
    values = unit_rows(clustered(900, dimension))
    cells = fit_cells(lambda places: values[places], len(values), 12)
    rows, asked = sign_rows(values[cells.places], centres_of(cells)), unit_rows(clustered(1, dimension, seed=9))[0]
    question, towards = sign_question(asked), cells.centres @ asked
    signs = np.unpackbits(rows.signs.view(np.uint8), axis=1, bitorder="little")[:, :dimension].astype(np.float64)
    planes = np.unpackbits(question.planes.view(np.uint8), axis=1, bitorder="little")[:, :dimension]
    parts = question.low + question.step * (planes * (1 << np.arange(len(planes)))[:, None]).sum(axis=0)
    own = np.repeat(towards, np.diff(cells.starts))
    plain = own + rows.reaches * (2.0 * (signs @ parts) - question.total)
    found = best_in_ranges(rows, question, cells.starts[:-1], cells.starts[1:], towards, 50)
    first = np.argsort(-plain, kind="stable")
    assert len(set(found.tolist())) == 50
    assert set(first[:10].tolist()) <= set(found.tolist())
    assert len(np.intersect1d(found, first[:50])) >= 48, "signs alone pass over a row near the last one that is kept"
    monkeypatch.setattr(scan, "_DEVIATIONS", 1e6)  # every row is weighed
    found = best_in_ranges(rows, question, cells.starts[:-1], cells.starts[1:], towards, 50)
    assert len(set(found.tolist())) == 50
    assert plain[found].min() >= plain[first[49]] - 1e-5


@pytest.mark.parametrize("dimension", [5, 64, 100, 384])
def test_the_signs_of_a_question_are_its_parts_up_to_the_length_that_it_says(dimension):
    asked = unit_rows(clustered(1, dimension, seed=9))[0]
    question, turned = sign_question(asked), rotate(asked[None])[0]
    signs = np.unpackbits(question.signs.view(np.uint8), bitorder="little").astype(np.float64)
    assert not signs[dimension:].any()
    assert np.linalg.norm(turned - question.size * (2 * signs[:dimension] - 1)) == pytest.approx(
        question.rest, rel=1e-4
    )


def test_centres_are_compared_by_codes_up_to_a_few_thousandths():
    values = unit_rows(clustered(900, 384))
    cells = fit_cells(lambda places: values[places], len(values), 12)
    searched = VectorsInCells(sign_rows(values[cells.places], centres_of(cells)), cells)
    assert np.allclose(searched._compare_centres(values[3]), cells.centres @ values[3], atol=0.005)


def test_fewer_rows_than_are_wanted_are_all_kept():
    values = unit_rows(clustered(30, 64))
    cells = fit_cells(lambda places: values[places], len(values), 3)
    rows, asked = sign_rows(values[cells.places], centres_of(cells)), values[4]
    towards = cells.centres @ asked
    found = best_in_ranges(rows, sign_question(asked), cells.starts[:-1], cells.starts[1:], towards, 50)
    assert sorted(found.tolist()) == list(range(30))
