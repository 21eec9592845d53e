"""A graph and its memory leave as text and come back whole, into another home."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from hades.api import Hades
from hades.night.release.export import ExportError, Form, export_text, import_text, seal_export
from hades.ports.services import utc_now
from hades.wiring import open_hades
from schemas.catalogue import COLLECTIONS
from tests.command_line import run_json
from tests.homes import live_in, settings_of
from tests.unit.hades.night.release.small_graphs import write_pages


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "page.md").write_text(
        "# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n", encoding="utf-8"
    )
    settings = settings_of(folder / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "page.md")
        hades.memory.add("rivers", "The ferry at Bonn is closed.")
    return folder


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_every_row_comes_back(source: Path, tmp_path: Path, form: Form) -> None:
    with _open(source) as old, _open(tmp_path) as new:
        export_text(old.store, tmp_path / "export", form, "all", at=utc_now(), hades="0")
        import_text(new.store, tmp_path / "export")
        for collection in COLLECTIONS:
            rows = [
                [row for batch in one.store.scan(collection.name) for row in batch.to_pylist()]
                for one in (old, new)
            ]
            assert rows[0] == rows[1], collection.name
        assert new.store.count("memory_states") == 1


def test_export_import_publish_gives_the_same_snapshot_in_another_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    run_json("ingest", "documents", str(write_pages(tmp_path / "pages", 6)))
    (built,) = run_json("build")["builds"]
    run_json("export", str(tmp_path / "copy"))
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o700
    rights = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "copy").iterdir()}
    assert rights == {0o600}
    live_in(tmp_path / "new", monkeypatch)
    run_json("import", str(tmp_path / "copy"))
    assert run_json("publish")["snapshot"] == built["released"]["snapshot"]


def test_memory_alone_can_be_taken(source: Path, tmp_path: Path) -> None:
    with _open(source) as old:
        document = export_text(
            old.store, tmp_path / "export", "markdown", "memory", at=utc_now(), hades="0"
        )
    assert set(document["collections"]) >= {"memory_states"}
    assert all(name.startswith("memory_") for name in document["collections"])
    assert "> The ferry at Bonn is closed." in (tmp_path / "export" / "memory_states.md").read_text(
        encoding="utf-8"
    )


def test_an_edited_file_is_refused_until_it_is_sealed(source: Path, tmp_path: Path) -> None:
    with _open(source) as old, _open(tmp_path) as new:
        export_text(old.store, tmp_path / "export", "jsonl", "memory", at=utc_now(), hades="0")
        file = tmp_path / "export" / "memory_states.jsonl"
        file.write_text(file.read_text(encoding="utf-8").replace("Bonn", "Mainz"), encoding="utf-8")
        with pytest.raises(ExportError, match="is not what was exported"):
            import_text(new.store, tmp_path / "export")
        assert new.store.count("memory_states") == 0
        seal_export(tmp_path / "export")
        import_text(new.store, tmp_path / "export")
        assert "Mainz" in json.dumps(_rows(new, "memory_states"), default=str)


def test_a_line_that_is_no_row_is_named(source: Path, tmp_path: Path) -> None:
    with _open(source) as old:
        export_text(old.store, tmp_path / "export", "jsonl", "memory", at=utc_now(), hades="0")
    with (tmp_path / "export" / "memory_states.jsonl").open("a", encoding="utf-8") as file:
        file.write("{half\n")
    with pytest.raises(ExportError, match=r"memory_states\.jsonl:2: "):
        seal_export(tmp_path / "export")


def _rows(hades: Hades, name: str) -> list[dict[str, Any]]:
    return [row for batch in hades.store.scan(name) for row in batch.to_pylist()]


def _open(folder: Path) -> Hades:
    settings = settings_of(folder / "home")
    return open_hades(settings)
