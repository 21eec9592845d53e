"""Lines and files that became documents are not read again while all they depend on stays; the result is the same."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hades.ingest.forget import forget_documents
from hades.ingest.ingest import Ingest
from hades.ingest.phases import IngestContext, Phase, ingest
from hades.ingest.sources.arxiv import ArxivSource
from hades.ingest.sources.material import Material, RecordSource
from hades.ingest.sources.passages import PassagesSource
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ingest.unchanged import KnownRecords
from tests.patience import examples
from tests.unit.hades.ingest.corpora import contents, new_context

PHASES = (Phase.NODES, Phase.CHUNKS)
TEXTS = ("Ada met Charles.", "Grace wrote to Ada.", "")
rows = st.builds(
    lambda number, title, text: json.dumps(
        {"id": f"p{number}", "title": title, "text": text, "abstract": text, "date": "1843"}
    ),
    st.integers(0, 4),
    st.sampled_from(("Letters", "Engines")),
    st.sampled_from(TEXTS),
)
lines = st.lists(rows | st.sampled_from(("", "no JSON", "[]", '{"title": "without id"}')), max_size=7)
beside = st.lists(
    st.builds(
        lambda number, name: json.dumps(
            {
                "id": f"p{number}",
                "entities": [name],
                "triples": [[name, "met", "Ada"]],
                "src": f"p{number}",
                "dst": name,
            }
        ),
        st.integers(0, 5),
        st.sampled_from(("Grace", "Charles")),
    ),
    max_size=2,
)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    versions=st.lists(st.tuples(lines, beside), min_size=2, max_size=4),
    papers=st.booleans(),
    damage=st.none() | st.tuples(st.integers(1, 3), st.binary(max_size=200)),
)
def test_any_sequence_of_files_gives_what_reading_all_of_each_gives(
    versions: list, papers: bool, damage: tuple[int, bytes] | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept, whole = new_context(Path(folder) / "kept"), new_context(Path(folder) / "whole")
        for step, (corpus, linked) in enumerate(versions):
            if damage is not None and damage[0] == step:
                for file in kept.scratch.glob("records-*"):
                    file.write_bytes(damage[1])
            shutil.rmtree(whole.scratch, ignore_errors=True)
            reports = [_read(one, _write(Path(folder), corpus, linked, papers)) for one in (kept, whole)]
            assert reports[0] == reports[1]
            assert contents(kept.store) == contents(whole.store)


files = st.dictionaries(
    st.sampled_from(("pkg/__init__.py", "pkg/one.py", "two.py", "three.go", "go.mod", "page.md", "settings.toml")),
    st.sampled_from(
        (
            b"def meet() -> None:\n    greet()\n",
            b"module example.org/engine\n",
            b'package main\nimport "example.org/engine/wheel"\n',
            b"# Letters\n\nAda wrote.\n",
            b"",
            b"\x00binary",
            b"\xef\xbb\xbfx = 1\n",
            b"x = 1\n",
        )
    ),
)


@settings(max_examples=examples(4), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(versions=st.lists(files, min_size=2, max_size=4), lost=st.none() | st.sampled_from(("parsed-*", "records-*")))
def test_any_sequence_of_folders_gives_what_reading_all_of_each_gives(versions: list, lost: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept, whole = new_context(Path(folder) / "kept"), new_context(Path(folder) / "whole")
        for version in versions:
            root = _workspace(Path(folder) / "code", version)
            shutil.rmtree(whole.scratch, ignore_errors=True)
            for file in list(kept.scratch.glob(lost)) if lost else []:
                file.unlink()
            reports = [_read(one, WorkspaceSource(root, scratch=one.scratch)) for one in (kept, whole)]
            assert reports[0] == reports[1]
            assert contents(kept.store) == contents(whole.store)


def test_only_files_that_changed_are_read_and_what_was_parsed_of_the_others_stays(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    root = _workspace(tmp_path / "code", {"one.py": b"def meet(): ...\n", "two.py": b"def part(): ...\n"})
    _read(context, WorkspaceSource(root, scratch=context.scratch))
    (root / "two.py").write_text("def leave(): ...\n")
    source = WorkspaceSource(root, scratch=context.scratch)
    assert [one.origin for one in _unread(context, source)] == ["two.py"]
    (parsed,) = (file.read_bytes() for file in context.scratch.glob("parsed-*"))
    assert b"meet" in parsed
    assert b"leave" in parsed
    assert b"part" not in parsed


def test_a_file_that_is_gone_is_forgotten_and_the_others_stay(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    root = _workspace(tmp_path / "code", {"one.py": b"x = 1\n", "two.py": b"y = 2\n"})
    _read(context, WorkspaceSource(root, scratch=context.scratch))
    (root / "two.py").unlink()
    report = _read(context, WorkspaceSource(root, scratch=context.scratch))
    assert report["documents"] == {"read": 1, "new": 0, "changed": 0, "unchanged": 1, "removed": 1}


def test_only_lines_that_are_new_or_changed_are_read(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    _read(context, _passages(tmp_path, "one", "two", "three"))
    source = _passages(tmp_path, "one", "changed", "three", "four")
    assert [one.origin for one in _unread(context, source)] == ["p1", "p3"]


def test_a_line_whose_document_was_forgotten_is_read_again(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    source = _passages(tmp_path, "one", "two")
    _read(context, source)
    context.store.delete("ingest_manifest", keys=[_key(context, "p1")])
    assert [one.origin for one in _unread(context, source)] == ["p1"]


def test_forgetting_leaves_no_list_of_lines(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    _read(context, _passages(tmp_path, "one", "two"))
    assert [path.name for path in context.scratch.iterdir() if b"p1" in path.read_bytes()]
    forget_documents(context.store, context.embedder, context.rules, ["p1"], context.scratch)
    assert not list(context.scratch.glob("records-*"))


def test_another_domain_reads_every_line(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    source = _passages(tmp_path, "one", "two")
    _read(context, source)
    assert len(list(_unread(context, source, domain="letters"))) == 2


def test_two_lines_with_one_id_are_both_read_and_the_first_counts(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    path = tmp_path / "corpus.jsonl.gz"
    texts = [json.dumps({"id": name, "text": text}) for name, text in (("a", "x"), ("b", "y"), ("a", "z"))]
    path.write_bytes(gzip.compress("\n".join(texts).encode()))
    _read(context, PassagesSource(path))
    path.write_bytes(gzip.compress("\n".join(reversed(texts)).encode()))
    report = _read(context, PassagesSource(path))
    assert report["documents"] == {"read": 2, "new": 0, "changed": 1, "unchanged": 1, "removed": 0}
    assert report["quarantined"] == {"duplicate": 1}
    texts_now = {row["origin"]: row["text"] for row in context.store.get("documents", _keys(context)).to_pylist()}
    assert texts_now == {"a": "z", "b": "y"}


@pytest.mark.parametrize("kind", [PassagesSource, ArxivSource])
def test_sources_of_lines_are_known_as_such(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("")
    assert isinstance(kind(path), RecordSource)


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    context = new_context(tmp_path)
    path = _passages(tmp_path, "one", "two").records_path
    changed = path.read_text().replace("two", "three")
    Ingest(replace(context, progress=lambda *_: path.write_text(changed))).passages(path, phases=PHASES)
    (again,) = Ingest(context).again(None, PHASES)
    assert again["documents"]["changed"] == 1
    (same,) = Ingest(context).again(None, PHASES)
    assert same["note"] == "its files have not changed"


def _write(folder: Path, corpus: list[str], linked: list[str], papers: bool) -> PassagesSource | ArxivSource:
    files = folder / "corpus.jsonl", folder / "beside.jsonl"
    for path, texts in zip(files, (corpus, linked), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts))
    return ArxivSource(*files) if papers else PassagesSource(*files)


def _workspace(root: Path, version: dict[str, bytes]) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, data in version.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(data)
    return root


def _passages(folder: Path, *texts: str) -> PassagesSource:
    rows = [json.dumps({"id": f"p{number}", "text": text}) for number, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    return PassagesSource(folder / "corpus.jsonl")


def _read(context: IngestContext, source: RecordSource) -> dict:
    return {**ingest(context, source, PHASES).as_dict(), "seconds": {}}


def _unread(context: IngestContext, source: RecordSource, domain: str = "") -> list[Material]:
    known = KnownRecords.load(context.scratch, source, domain).origins(context.store, source)
    source.leave_out(known)
    return [one for one in source.read() if isinstance(one, Material)]


def _keys(context: IngestContext) -> list[str]:
    return [
        key for batch in context.store.scan("documents", columns=["_key"]) for key in batch.column("_key").to_pylist()
    ]


def _key(context: IngestContext, origin: str) -> str:
    rows = context.store.get("documents", _keys(context), columns=["_key", "origin"]).to_pylist()
    return next(row["_key"] for row in rows if row["origin"] == origin)
