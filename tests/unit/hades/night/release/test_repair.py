"""A damaged row of any collection: the night stops with a command, and that command repairs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hades.errors import ContractBroken, HadesError
from hades.night.contracts.check import check_contracts
from hades.night.repair import repair
from hades.night.stage import begin
from hades.night.stages import STORE_CONTRACTS
from tests.unit.hades.night.contracts.built import first, force
from tests.unit.hades.night.release.small_graphs import MONDAY, opened, write_pages

CODE = (
    '"""The mill grinds."""\nfrom engine import turn\n\n\ndef grind():\n    """Grind '
    'once."""\n '
    "   return turn(1)\n"
)
DAMAGE = {
    "documents": {"sha256": "0" * 64},
    "files": {"sha256": "0" * 64},
    "funcs": {"span": [0, 100_000]},
    "doc_chunks": {"text": "something else", "embedding": [2.0] + [0.0] * 255},
    "entities": {"name_lower": "SHOUTED", "deg_out": 99, "cluster_id": None},
    "relations": {"evidence_count": 0, "weight": 0.123},
    "mentions": {"_to": "entities/gone"},
    "references": {"_to": "doc_chunks/gone"},
    "contains": {"_to": "funcs/gone"},
    "chunk_code_edges": {"_to": "funcs/gone"},
    "clusters": {"size": 1_000},
    "cluster_edges": {"_to": "clusters/gone"},
    "weight_config": {"tau_days": -1.0},
    "bridge_cache": {"cost": 7.0},
}


def test_the_printed_command_repairs_damage_in_every_collection(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages")
    (pages / "page1.md").write_text(
        "# Page 1\n\n" + "Ada Lovelace met Charles Babbage in London again. " * 90
    )
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mill.py").write_text(CODE)
    (tmp_path / "code" / "engine.py").write_text(
        'def turn(wheel):\n    """Turn a wheel."""\n    return wheel\n'
    )
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(pages)
        hades.ingest.workspace(tmp_path / "code")
        hades.build(as_of=MONDAY)
        counts = hades.store.counts()
        damaged = [name for name in DAMAGE if counts[name]]
        assert set(DAMAGE) - set(damaged) <= {"bridge_cache", "references"}
        for name in damaged:
            force(hades.store, name, first(hades.store, name)["_key"], **DAMAGE[name])
        with pytest.raises(ContractBroken) as stopped:
            check_contracts(hades.build_context, STORE_CONTRACTS).require()
        commands = set(re.findall(r"`hades repair (\w+)`", str(stopped.value)))
        assert {"nodes", "chunks", "embeddings", "edges", "hierarchy", "weights"} <= commands
        told = repair(
            hades.build_context,
            hades.ingest,
            begin(MONDAY),
            sorted(commands, key=STORE_CONTRACTS.index),
        )
        assert told["holds"], told["notes"]
        after = hades.store.counts()
        assert {name: after[name] for name in damaged} == {name: counts[name] for name in damaged}


def test_nothing_is_changed_where_every_contract_holds(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as hades:
        hades.ingest.documents(write_pages(tmp_path / "pages"))
        hades.build(as_of=MONDAY)
        before = rows_of(hades)
        told = repair(hades.build_context, hades.ingest, begin(MONDAY))
        assert (told["contracts"], told["stages"], told["holds"]) == ([], [], True)
        assert rows_of(hades) == before
        with pytest.raises(HadesError, match="there is no contract egdes"):
            repair(hades.build_context, hades.ingest, begin(MONDAY), ["egdes"])


def rows_of(hades) -> dict[str, list]:
    names = ("relations", "entities", "doc_chunks")
    return {
        name: [row for batch in hades.store.scan(name) for row in batch.to_pylist()]
        for name in names
    }
