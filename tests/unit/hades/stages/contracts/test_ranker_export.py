"""Every rule of what a ranker is fitted to has a corruption that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hades.build.contracts.check import require_contracts
from hades.build.contracts.outputs import RANKER_CONTRACT as CONTRACT
from hades.build.ranker.questions import (
    FEEDBACK,
    LabelledQuestion,
    QuestionCandidates,
    RankerExport,
    read_table,
    write_export,
)
from hades.build.ranker.stage import check_export
from hades.errors import ContractBroken
from hades.providers.hashing import HashingEmbedder
from hades.snapshot.write_parts import graph_of
from tests.unit.hades.retrieval.films import published

Change = Callable[[pa.Table], pa.Table]


def exported(folder: Path, where: Path) -> RankerExport:
    """The graph of the films, a labelled question and three judged answers, of which the last is held out."""
    view = published(folder)
    graph = graph_of(view, HashingEmbedder().model.tag)
    first = view.info.nodes["entities"]
    ids = view.ids(np.arange(first, first + 4))
    wanted, counts = np.array([True, False, False, False]), np.array([True, True, True, False])
    asked = [LabelledQuestion("who directed it?", gold=frozenset({"x"}))]
    asked += [
        LabelledQuestion(f"q{day}", good=frozenset(ids[:1]), shown={ids[0]: 0.4}, at=day * 1e5, source=FEEDBACK)
        for day in (1, 2, 3)
    ]
    offered = [QuestionCandidates(one, "films", place == 3, ids, wanted, counts) for place, one in enumerate(asked)]
    return write_export(where, {"films": (view, graph)}, offered)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    folder = tmp_path_factory.mktemp("films")
    written = exported(folder, folder / "export")
    assert check_export(written.folder).findings == ()
    again = exported(tmp_path_factory.mktemp("films2"), folder / "again")
    assert again.data_hash == written.data_hash
    return {name: read_table(written.folder, name) for name in ("nodes", "edges", "questions", "preferences")}


def test_pairs_keep_the_chance_that_the_better_side_stood_where_it_stood(sound: dict[str, pa.Table]) -> None:
    rows = sound["preferences"].to_pylist()
    assert len(rows) == 4 * 2  # what was not shown was not passed over
    assert {row["propensity"] for row in rows if row["source"] == FEEDBACK} == {0.4}
    assert {row["propensity"] for row in rows if row["source"] == "file"} == {1.0}
    assert sound["questions"].column("split").to_pylist() == ["fit", "fit", "fit", "held"]


def value(column: str, new: object, row: int = 0) -> Change:
    """One cell becomes another."""

    def change(table: pa.Table) -> pa.Table:
        cells = table.column(column).to_pylist()
        cells[row] = new
        place = table.schema.get_field_index(column)
        return table.set_column(place, table.schema.field(column), pa.array(cells, table.schema.field(column).type))

    return change


def twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)])


def not_a_number(table: pa.Table) -> pa.Table:
    features = table.column("features").to_pylist()
    features[2][5] = float("nan")
    return value("features", features[2], 2)(table)


def both_ways(table: pa.Table) -> pa.Table:
    first = table.slice(0, 1)
    turned = first.set_column(2, "better", first.column("worse")).set_column(3, "worse", first.column("better"))
    return pa.concat_tables([table, turned])


def fewer(table: pa.Table) -> pa.Table:
    return table.filter(pc.not_equal(table.column("source"), table.column("source")[0]))


BREAKS: dict[str, tuple[str, Change]] = {
    "ranker.some_nodes": ("nodes", lambda table: table.slice(0, 0)),
    "ranker.node_unique": ("nodes", twice),
    "ranker.node_of_its_kind": ("nodes", value("kind", "clusters")),
    "ranker.features_finite": ("nodes", not_a_number),
    "ranker.degrees_match": ("edges", fewer),
    "ranker.edge_ends_exist": ("edges", value("target", 10_000)),
    "ranker.some_questions": ("questions", lambda table: table.slice(0, 0)),
    "ranker.question_has_text": ("questions", value("text", "  ")),
    "ranker.split_known": ("questions", value("split", "guessed")),
    "ranker.source_known": ("questions", value("source", "hearsay")),
    "ranker.held_out_is_later": ("questions", value("split", "held", 1)),
    "ranker.pair_of_a_question": ("preferences", value("question", 99)),
    "ranker.pair_of_nodes": ("preferences", value("worse", "doc_chunks/gone")),
    "ranker.pair_is_one_way": ("preferences", both_ways),
    "ranker.propensity_in_range": ("preferences", value("propensity", 0.0)),
}


def test_every_rule_has_a_corruption() -> None:
    assert set(BREAKS) == {rule.id for rule in CONTRACT.rules}


@pytest.mark.parametrize("rule", sorted(BREAKS))
def test_a_corruption_turns_its_rule_red(rule: str, sound: dict[str, pa.Table], tmp_path: Path) -> None:
    name, change = BREAKS[rule]
    for table, rows in sound.items():
        changed = change(rows) if table == name else rows
        with pa.OSFile(str(tmp_path / f"{table}.arrow"), "wb") as file, pa.ipc.new_file(file, changed.schema) as writer:
            writer.write_table(changed)
    checked = check_export(tmp_path)
    assert rule in {finding.rule for finding in checked.findings}
    with pytest.raises(ContractBroken, match=rule):
        require_contracts([checked])
