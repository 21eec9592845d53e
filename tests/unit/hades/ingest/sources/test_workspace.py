"""A small workspace, read whole: which files count, what is known of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.ingest.sources import documents as converted_files
from hades.ingest.sources import workspace
from hades.ingest.sources.confined import ConfinedPool
from hades.ingest.sources.files import SourceError
from hades.ingest.sources.material import Material, RejectedInput, RejectReason
from hades.ingest.sources.workspace import MAX_PARSED_CHARS, WorkspaceSource
from schemas.nodes import ChunkKind, FuncKind
from tests.unit.hades.ingest.corpora import new_context


def make(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def read(root: Path) -> dict[str, Material]:
    outcomes = list(WorkspaceSource(root).read())
    assert all(isinstance(one, Material) for one in outcomes), outcomes
    return {one.origin: one for one in outcomes if isinstance(one, Material)}


def test_code_and_prose_are_read_and_everything_else_is_passed_over(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "gen/\n",
            "README": "About it.",
            "docs/guide.md": "# Guide\nHow to.\n",
            "Dockerfile": "FROM scratch\n",
            "data.json": "{}",
            "package-lock.json": "{}",
            "setup.cfg": "[metadata]\nname = x\n",
            "gen/made.py": "x = 1",
            "logo.svg": "<svg/>",
            "pkg/__init__.py": "",
            "pkg/core.py": '"""Core."""\nfrom . import util\n\ndef run():\n    """Runs."""\n    '
            "util.go()\n",
            "web/app.ts": "// Starts it\nexport function start(): void { boot(); }\n",
        },
    )
    found = read(tmp_path)
    assert list(found) == [
        *(
            "Dockerfile",
            "README",
            "data.json",
            "docs/guide.md",
            "pkg/__init__.py",
            "pkg/core.py",
            "setup.cfg",
        ),
        "web/app.ts",
    ]
    settings = found["setup.cfg"]
    assert [(one.kind, settings.text[one.start : one.end]) for one in settings.sections] == [
        (ChunkKind.TEXT, "[metadata]\nname = x")
    ]
    core = found["pkg/core.py"]
    assert core.code is not None
    assert (core.code.module, core.code.language, core.code.size) == (
        "pkg.core",
        "python",
        len(core.text),
    )
    assert [one[:3] for one in core.code.imports] == [("pkg", "util", None)]
    assert [(one.qualified_name, one.kind, one.calls) for one in core.code.symbols] == [
        ("pkg.core.run", FuncKind.FUNCTION, ("util.go",))
    ]
    assert [
        (core.text[one.start : one.end], one.kind, one.symbol, one.headings)
        for one in core.sections
    ] == [
        ('"""Core."""\nfrom . import util', ChunkKind.MODULE, None, ("pkg.core",)),
        ('def run():\n    """Runs."""\n    util.go()', ChunkKind.FUNCTION, "run", ("run",)),
    ]
    assert [core.text[start:end] for start, end in core.code.prose or ()] == ["Core.", "Runs."]
    assert found["docs/guide.md"].sections[0].headings == ("Guide",)
    app = found["web/app.ts"].code
    assert app is not None
    assert [one.qualified_name for one in app.symbols] == ["web.app.start"]


def test_empty_files_are_files_without_sections(tmp_path: Path) -> None:
    found = read(make(tmp_path, {"a/__init__.py": "", "b/__init__.py": "\n"}))
    assert {path: one.sections for path, one in found.items()} == {
        "a/__init__.py": (),
        "b/__init__.py": (),
    }


def test_code_that_does_not_parse_is_kept_as_text_with_the_reason(tmp_path: Path) -> None:
    many = "x = 1\n" * (MAX_PARSED_CHARS // 6 + 1)
    found = read(make(tmp_path, {"bad.py": "def broken(:\n", "large.py": many}))
    for path, word in (("bad.py", "SyntaxError"), ("large.py", "longer than")):
        assert word in str(found[path].metadata["unparsed"])
        assert {one.kind for one in found[path].sections} == {ChunkKind.MODULE}


def test_go_imports_of_the_workspace_itself_lose_its_prefix(tmp_path: Path) -> None:
    files = {
        "go.mod": "module example.com/x\n\ngo 1.22\n",
        "a/m.go": 'package a\nimport "example.com/x/b/c"\n',
    }
    code = read(make(tmp_path, files))["a/m.go"].code
    assert code is not None
    assert [one[:3] for one in code.imports] == [("b.c", None, "c")]


def test_unusable_files_are_set_aside(tmp_path: Path) -> None:
    make(tmp_path, {"ok.py": "x = 1", "blank.md": " "})
    (tmp_path / "binary.py").write_bytes(b"\0\1\2")
    (tmp_path / "minified.js").write_text("a();" * 50_000)
    outcomes = list(WorkspaceSource(tmp_path).read())
    assert {one.uri: one.reason for one in outcomes if isinstance(one, RejectedInput)} == {
        "binary.py": RejectReason.NOT_TEXT,
        "blank.md": RejectReason.EMPTY,
        "minified.js": RejectReason.OVERSIZED,
    }


def test_a_missing_workspace_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expected the root of a code workspace"):
        WorkspaceSource(tmp_path / "none")


def test_two_readings_are_equal_and_of_the_total_length(tmp_path: Path) -> None:
    make(
        tmp_path,
        {f"m{number}.py": f"def f{number}():\n    return {number}\n" for number in range(40)},
    )
    source = WorkspaceSource(tmp_path)
    assert list(source.read()) == list(source.read())
    assert source.total == 40


@pytest.mark.parametrize("workers", [1, 3])
def test_files_are_parsed_by_as_many_processes_as_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    sizes: list[int] = []

    class SizedPool(ConfinedPool):
        def __init__(self, function: str, size: int) -> None:
            sizes.append(size)
            super().__init__(function, size)

    monkeypatch.setattr(workspace, "ConfinedPool", SizedPool)
    monkeypatch.setattr(converted_files, "ConfinedPool", SizedPool)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "reader.py").write_text("class Reader:\n    pass\n")
    (folder / "guide.md").write_text("# Guide\n\nThe Analytical Engine reads parts.\n")
    api = Ingest(replace(new_context(tmp_path / "home"), workers=workers))
    api.workspace(folder, [Phase.NODES], history=False)
    api.documents(folder, [Phase.NODES])
    assert sizes == [workers, workers]
