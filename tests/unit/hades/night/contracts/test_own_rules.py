"""Rules of a home's own, tried before they count; and every contract as a project that runs without
HADES.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hades.errors import ContractBroken, HadesError
from hades.night.contracts.check import (
    CONTRACT_NAMES,
    check_contract,
    check_contracts,
    export_project,
)
from hades.night.contracts.own import FILE, read_own, try_rules
from hades.night.exam.questions import ExamQuestion
from hades.night.exam.stage import check_exam
from hades.snapshot.pointer import read, root_of
from hades.snapshot.publish import publish
from hades.stores.sqlite.store import SqliteStore
from tests.contract.examples import everything
from tests.unit.hades.night.contracts.built import force
from tests.warm_process import start_program

RULES = """
expectations:
  - name: titles_are_short
    collection: documents
    type: expect_column_value_lengths_to_be_between
    kwargs: {column: title, max_value: 12}
    severity: warn
    sentence: a title has at most 12 characters
  - name: few_chunks
    collection: doc_chunks
    type: ExpectTableRowCountToBeBetween
    kwargs: {max_value: 2}
  - name: chunks_have_vectors
    collection: doc_chunks
    type: expect_column_values_to_not_be_null
    kwargs: {column: embedding}
"""


def context(store: SqliteStore, home: Path) -> Any:
    return SimpleNamespace(store=store, home=home, engine=None)


def test_own_rules_are_checked_with_the_contract_that_completes_their_rows(
    store: SqliteStore, home: Path
) -> None:
    (home / FILE).write_text(RULES)
    nodes = check_contracts(context(store, home), ["nodes"]).require()
    assert [one.contract for one in nodes.checked] == ["nodes", "own"]
    assert [one.rule for one in nodes.checked[1].warnings] == ["own.titles_are_short"]
    assert (
        "warning: own.titles_are_short: a title has at most 12 characters" in nodes.page.read_text()
    )
    with pytest.raises(ContractBroken, match=r"own\.few_chunks: ExpectTableRowCount"):
        check_contracts(context(store, home), ["embeddings:doc_chunks"]).require()
    assert [one.contract for one in check_contracts(context(store, home), ["bridges"]).checked] == [
        "bridges"
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("column: embedding", "column: vector", "doc_chunks has no column vector; it has _key"),
        ("collection: documents", "collection: memory_audit", "rules can be about documents"),
        ("severity: warn", "severity: maybe", "does not hold expectations"),
        ("name: few_chunks", "name: titles_are_short", "two expectations have one name"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    (tmp_path / FILE).write_text(RULES.replace(old, new))
    with pytest.raises(HadesError, match=told):
        read_own(tmp_path / FILE)


def test_rules_are_tried_on_the_store_and_on_every_snapshot(
    store: SqliteStore, home: Path, tmp_path: Path
) -> None:
    row = everything(store, "documents")[0]
    force(store, "documents", row["_key"], title="a much longer title than the others")
    second = publish(store, home).snapshot
    (tmp_path / "new.yaml").write_text(RULES.replace("max_value: 12", "max_value: 30"))
    verdicts = {
        (one["build"], one["rule"]): one for one in try_rules(store, home, tmp_path / "new.yaml")
    }
    builds = list(dict.fromkeys(build for build, _ in verdicts))
    assert builds[:2] == ["store", second]
    assert len(builds) == 3
    told = {rule: [verdicts[build, f"own.{rule}"]["verdict"] for build in builds] for rule in NAMES}
    assert told["titles_are_short"] == ["broken", "broken", "holds"]
    assert told["few_chunks"] == ["broken"] * 3
    assert told["chunks_have_vectors"] == [
        "holds",
        "unknown",
        "unknown",
    ]  # vectors of snapshots are packed
    assert not (home / FILE).exists()


NAMES = ("titles_are_short", "few_chunks", "chunks_have_vectors")


def test_the_exported_project_gives_the_same_verdicts_without_hades(
    store: SqliteStore, home: Path, tmp_path: Path
) -> None:
    chunk = everything(store, "doc_chunks")[0]["_key"]
    force(store, "doc_chunks", chunk, text=" ")
    (home / FILE).write_text(RULES)
    pointer = read(root_of(home))
    assert pointer is not None
    folder, serving = tmp_path / "made", root_of(home) / pointer.snapshot
    suites = export_project(context(store, home), folder, serving)
    checked = [
        check_contract(store, name, snapshot=serving, engine="arrow") for name in CONTRACT_NAMES
    ]
    assert sum(suites.values()) == sum(one.rules for one in checked) + len(NAMES)
    folder = folder.rename(tmp_path / "moved")
    ran = run_check(folder)
    broken = {tuple(line.split()[:2]) for line in ran.stdout.splitlines()[:-1]}
    expected = {("critical", finding.rule) for one in checked for finding in one.findings}
    assert len(expected) > 1
    assert broken == expected | {
        ("warning", "own.titles_are_short"),
        ("critical", "own.few_chunks"),
    }, ran.stderr
    assert ran.returncode == 1
    with pytest.raises(HadesError, match="is not empty"):
        export_project(context(store, home), folder, None)


def test_the_exported_project_compares_ids_and_spans_itself(
    store: SqliteStore, home: Path, tmp_path: Path, programs: Path
) -> None:
    folder = tmp_path / "made"
    export_project(context(store, home), folder, None)
    assert said_by_check(programs, folder) == "every rule holds\n"
    relation = everything(store, "relations")[0]
    lost = (relation["_from"], relation["provenance"]["doc"])
    for name in ("entities", "documents"):
        path = folder / "data" / f"keys.{name}.parquet"
        keys = pq.read_table(path)
        pq.write_table(keys.filter(pc.invert(pc.is_in(keys["id"], pa.array(lost)))), path)
    path = folder / "data" / "chunks.doc_chunks.parquet"
    chunks = pq.read_table(path).to_pandas()
    chunks["span"] = [[0, 1_000_000]] * len(chunks)
    chunks.to_parquet(path)
    broken = {line.split()[1] for line in said_by_check(programs, folder).splitlines()[:-1]}
    assert broken >= {
        "edges.ends_exist",
        "edges.mention_ends_exist",
        "edges.provenance_document_exists",
        "chunks.document_exists",
        "chunks.span_inside_document",
    }


def run_check(folder: Path) -> subprocess.CompletedProcess[str]:
    """The script of an exported project, in a process that cannot import HADES."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, str(folder / "check.py")],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def said_by_check(programs: Path, folder: Path) -> str:
    """What the same script prints, in a process that has its imports."""
    script = f"import runpy\nrunpy.run_path({str(folder / 'check.py')!r}, run_name='__main__')"
    with start_program(programs, script, stdout=subprocess.PIPE) as check:
        assert check.stdout is not None
        return check.stdout.read()


def test_every_rule_of_the_exam_can_be_broken() -> None:
    sound = ExamQuestion("heading", "what is it?", (("doc_chunks/1",),), key="q1")
    assert check_exam([sound]).is_green
    bad = {
        "exam.question_unique": [sound, sound],
        "exam.question_has_text": [replace(sound, text=" ")],
        "exam.answer_known": [replace(sound, gold=())],
        "exam.weight_positive": [replace(sound, weight=0.0)],
    }
    assert {
        rule: [one.rule for one in check_exam(asked).findings] for rule, asked in bad.items()
    } == {rule: [rule] for rule in bad}
