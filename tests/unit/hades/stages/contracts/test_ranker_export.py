"""Every rule of what a ranker is fitted to has a corruption that breaks it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hades.build.contracts.outputs import RANKER_CONTRACT as CONTRACT
from hades.build.ranker.questions import FEEDBACK, LabelledQuestion, QuestionCandidates, export_tables, write_export
from hades.build.ranker.stage import check_export
from hades.providers.hashing import HashingEmbedder
from hades.snapshot.write_graph import graph_of
from tests.unit.hades.retrieval.films import published


def exported(folder: Path) -> dict[str, pa.Table]:
    """The graph of the films, a labelled question and three judged answers, of which the last is held out."""
    view = published(folder)
    first = view.info.nodes["entities"]
    ids = view.ids(np.arange(first, first + 4))
    wanted, counts = np.array([True, False, False, False]), np.array([True, True, True, False])
    asked = [LabelledQuestion("who directed it?", gold=frozenset({"x"}))]
    asked += [
        LabelledQuestion(f"q{day}", good=frozenset(ids[:1]), shown={ids[0]: 0.4}, at=day * 1e5, source=FEEDBACK)
        for day in (1, 2, 3)
    ]
    offered = [QuestionCandidates(one, "films", place == 3, ids, wanted, counts) for place, one in enumerate(asked)]
    return export_tables({"films": graph_of(view, HashingEmbedder().model.tag)}, offered)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    folder = tmp_path_factory.mktemp("films")
    tables = exported(folder)
    assert check_export(tables).findings == ()
    again = exported(tmp_path_factory.mktemp("films2"))
    assert write_export(folder / "one", tables) == write_export(folder / "two", again)
    return tables


def test_pairs_keep_the_chance_that_the_better_side_stood_where_it_stood(sound: dict[str, pa.Table]) -> None:
    rows = sound["preferences"].to_pylist()
    assert len(rows) == 4 * 2  # what was not shown was not passed over
    assert {row["propensity"] for row in rows if row["source"] == FEEDBACK} == {0.4}
    assert {row["propensity"] for row in rows if row["source"] == "file"} == {1.0}
    assert sound["questions"].column("split").to_pylist() == ["fit", "fit", "fit", "held"]


BREAKS: dict[str, tuple[str, str, int, object]] = {
    "ranker.some_nodes": ("graphs", "nodes", 0, 0),
    "ranker.features_finite": ("graphs", "is_finite", 0, False),
    "ranker.question_has_text": ("questions", "text", 0, "  "),
    "ranker.held_out_is_later": ("questions", "split", 1, "held"),
    "ranker.propensity_in_range": ("preferences", "propensity", 0, 0.0),
}


def test_every_rule_has_a_corruption() -> None:
    assert set(BREAKS) == {rule.id for rule in CONTRACT.rules}


@pytest.mark.parametrize("rule", sorted(BREAKS))
def test_a_corruption_turns_its_rule_red(rule: str, sound: dict[str, pa.Table]) -> None:
    name, column, row, value = BREAKS[rule]
    rows = sound[name].to_pylist()
    rows[row][column] = value
    checked = check_export({**sound, name: pa.Table.from_pylist(rows, schema=sound[name].schema)})
    assert [finding.rule for finding in checked.findings] == [rule]
