"""A store built by the book is green at every contract."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hades import stage_ledger
from hades.errors import ContractBroken
from hades.night.contracts.check import (
    CONTRACT_NAMES,
    check_contract,
    contract_named,
    require_contracts,
    write_page,
)
from hades.snapshot.pointer import read, root_of
from hades.stores.sqlite.store import SqliteStore
from tests.unit.hades.ingest.corpora import people_context
from tests.unit.hades.night.contracts.built import force


def serving(home: Path) -> Path:
    """The folder of the snapshot that serves."""
    pointer = read(root_of(home))
    assert pointer is not None
    return root_of(home) / pointer.snapshot


@pytest.mark.parametrize("contract", CONTRACT_NAMES)
def test_every_rule_of_a_sound_store_is_checked_and_holds(
    store: SqliteStore, home: Path, contract: str
) -> None:
    checked = check_contract(store, contract, snapshot=serving(home))
    assert checked.findings == ()
    assert checked.rules == len(contract_named(contract).rules)
    assert checked.rows > 0
    assert checked.notes == ()


def test_a_stage_that_never_ran_is_green_with_a_note_and_one_that_ran_is_checked(
    tmp_path: Path,
) -> None:
    context = people_context(tmp_path)
    for contract, note in (
        ("hierarchy", "no topics have been built yet"),
        ("weights", "no relation has been weighed yet"),
        ("bridges", "no bridges have been built yet"),
    ):
        checked = check_contract(context.store, contract)
        assert (checked.rules, checked.findings, checked.notes) == (0, (), (note,))
    stage_ledger.record(context.store, stage_ledger.BRIDGES, "digest")
    checked = check_contract(context.store, "bridges")
    assert (checked.rules, checked.findings) == (len(contract_named("bridges").rules), ())
    context.store.close()


def test_weights_without_coefficients_are_not_recomputed_and_the_report_says_so(
    store: SqliteStore,
) -> None:
    force(store, "weight_config", "cites", coefficients="{}")
    checked = check_contract(store, "weights")
    assert checked.findings == ()
    assert checked.notes == (
        "weights of cites were not recomputed: weight_config gives no coefficients",
    )


def test_require_names_rule_sentence_key_and_next_step_and_the_page_shows_them(
    store: SqliteStore, home: Path
) -> None:
    force(
        store,
        "doc_chunks",
        key := store.get("doc_chunks", _keys(store))["_key"][0].as_py(),
        text=" ",
    )
    checked = check_contract(store, "chunks")
    with pytest.raises(ContractBroken) as stopped:
        require_contracts([checked])
    told = str(stopped.value)
    assert (
        "chunks.text_is_the_span: a chunk's text is what its span cuts out of the document" in told
    )
    assert key in told
    assert "hades repair chunks" in told
    page = write_page([checked], home / "reports").read_text()
    assert "chunks.text_is_the_span" in page
    assert key in page
    assert "http" not in page.replace('charset="utf-8"', "")
    assert json.loads(json.dumps(checked.as_dict()))["is_green"] is False


def test_reading_the_rules_does_not_load_great_expectations() -> None:
    code = "import hades.night.contracts.check, sys; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _keys(store: SqliteStore) -> list[str]:
    return [
        key
        for batch in store.scan("doc_chunks", columns=["_key"])
        for key in batch.column("_key").to_pylist()
    ]
