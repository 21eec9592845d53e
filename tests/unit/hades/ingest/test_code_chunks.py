"""Units of code as they are stored, what the reader of names sees of them, and the summaries of
their symbols.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hades.ingest.code_graph.corpus import blank_code, summarise_docstring
from hades.ingest.ingest import Ingest
from hades.ingest.phases import ingest
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ports.graph import Kind
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from schemas.record import canonical_json
from tests.unit.hades.ingest.corpora import new_context

SOURCE = '''\
"""Reads rivers."""


class Reader:
    """Reads the Analytical Engine."""

    def open(self, path):
        """Opens it."""
        secret_handle = connect(path)
        raise ValueError("no such river delta")


def connect(path):
    return path
'''


def ingested(folder: Path, files: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    workspace = folder / "ws"
    for path, text in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    context = new_context(folder)
    Ingest(context).workspace(workspace)
    return {
        name: [row for batch in context.store.scan(name) for row in batch.to_pylist()]
        for name in ("doc_chunks", "funcs", "chunk_code_edges", "entities", "mentions")
    }


def test_bodies_are_stored_with_path_symbol_kind_signature_and_lines(tmp_path: Path) -> None:
    rows = ingested(tmp_path, {"lib/river.py": SOURCE})["doc_chunks"]
    rows.sort(key=lambda row: row["start_line"])
    assert [
        (row["kind"], row["symbol"], row["signature"], row["start_line"], row["end_line"])
        for row in rows
    ] == [
        ("module", "", "", 1, 1),
        ("class", "Reader", "class Reader", 4, 5),
        ("method", "Reader.open", "def open(self, path)", 7, 10),
        ("function", "connect", "def connect(path)", 13, 14),
    ]
    assert {row["file_path"] for row in rows} == {row["title"] for row in rows} == {"lib/river.py"}
    assert 'raise ValueError("no such river delta")' in rows[2]["text"]


def test_a_unit_describes_the_function_it_was_cut_from_also_where_two_share_a_name(
    tmp_path: Path,
) -> None:
    getter = "    @property\n    def x(self):\n        return 1\n"
    source = f"class A:\n{getter}\n    @x.setter\n    def x(self, v):\n        pass\n"
    found = ingested(tmp_path, {"a.py": source})
    funcs = {
        f"funcs/{row['_key']}": (row["qualified_name"], row["span"][0]) for row in found["funcs"]
    }
    chunks = {f"doc_chunks/{row['_key']}": row["start_line"] for row in found["doc_chunks"]}
    described = {chunks[edge["_from"]]: funcs[edge["_to"]] for edge in found["chunk_code_edges"]}
    assert described == {1: ("a.A", 0), 2: ("a.A.x", 13), 6: ("a.A.x", source.index("@x.setter"))}


def test_names_are_read_in_docstrings_and_not_in_code(tmp_path: Path) -> None:
    found = ingested(
        tmp_path, {"lib/river.py": SOURCE, "b.md": "# B\n\nThe Analytical Engine is old.\n"}
    )
    names = {row["name"] for row in found["entities"]}
    assert "Analytical Engine" in names
    assert not {"secret_handle", "ValueError"} & names


def test_lines_of_pages_beside_the_code_are_kept(tmp_path: Path) -> None:
    rows = ingested(tmp_path, {"b.md": "# B\n\nOne.\n\n## C\n\nTwo.\n"})["doc_chunks"]
    assert sorted((row["start_line"], row["end_line"], row["kind"]) for row in rows) == [
        (1, 3, "prose"),
        (5, 7, "prose"),
    ]


@pytest.fixture(scope="module")
def rivers(tmp_path_factory: pytest.TempPathFactory) -> GraphView:
    """The snapshot of a workspace of two files."""
    folder = tmp_path_factory.mktemp("rivers")
    (folder / "ws" / "lib").mkdir(parents=True)
    source = (
        'class RiverReader:\n    def open_handle(self):\n        raise OSError("no such '
        "river "
        'delta")\n'
    )
    for name, text in {"river.py": source, "other.py": "def unrelated():\n    return 1\n"}.items():
        (folder / "ws" / "lib" / name).write_text(text)
    context = new_context(folder)
    Ingest(context).workspace(folder / "ws")
    publish(context.store, folder / "home")
    return open_snapshot(folder / "home")


@pytest.mark.parametrize(
    "question", ["river_readers", "reader handles", "openRiverReader", "lib.river", "river delta"]
)
def test_units_are_found_by_parts_of_identifiers_in_the_snapshot(
    rivers: GraphView, question: str
) -> None:
    hits = rivers.lexical(question, kind=Kind.CHUNK, limit=5)
    assert rivers.passages(hits.numbers[:1])[0].symbol.startswith("RiverReader")


_TEXT = "x = 1  # set x\ny = 2  # é is kept\nz = 3\n"
_SPANS = [[7, 14], [22, 33]]
_SEEN = "       # set x\n       # é is kept\n     \n"
_SAYS_IT = {"symbols": [{"docstring": 'as in "prose":[[0,5]]'}]}


def _blank(facts: dict[str, Any], cuts: list[int]) -> str:
    """The chunks of one document after blanking, joined again; it is cut at these places."""
    ends = [*cuts, len(_TEXT)]
    bounds = list(zip([0, *cuts], ends, strict=True))
    documents = pa.table({"_key": ["d1"], "facts": [canonical_json(facts)]})
    chunks = pa.table(
        {
            "document": ["documents/d1"] * len(bounds),
            "text": [_TEXT[begin:end] for begin, end in bounds],
            "span": [list(bound) for bound in bounds],
        }
    )
    return "".join(blank_code(chunks, documents).column("text").to_pylist())


@pytest.mark.parametrize("cuts", [[], [15], [10, 15, 28, 34]])
@pytest.mark.parametrize(
    "facts",
    [
        {"code": {"prose": _SPANS}},
        {"code": {"prose": _SPANS, **_SAYS_IT}, "sections": [[0, 40, "module"]]},
        {"commit": {"prose": _SPANS}},
        {"code": {"prose": _SPANS}, "commit": {"prose": []}},
        {"code": {"prose": _SPANS}, "sections": [{"prose": [[0, 5]]}]},
    ],
)
def test_all_but_docstrings_and_comments_is_blanked_wherever_chunks_are_cut(
    facts: dict[str, Any], cuts: list[int]
) -> None:
    assert _blank(facts, cuts) == _SEEN


@pytest.mark.parametrize(
    "facts",
    [
        {"code": _SAYS_IT},
        {"code": {"path": "a.py"}, "commit": {"prose": []}},
        {"sections": [{"prose": []}]},
    ],
)
def test_a_document_that_states_no_spans_of_prose_stays_as_it_is(facts: dict[str, Any]) -> None:
    assert _blank(facts, [15]) == _TEXT


def test_code_without_any_prose_is_blank() -> None:
    assert _blank({"code": {"prose": []}}, []).split() == []


PUMPS = '''"""Pumps of the plant."""


class WaterPump:
    """Lifts water to the roof. It runs at night."""

    def lift_water(self):
        """Lift water and
        say how much arrived."""


def make_pump():
    return WaterPump()
'''


def test_a_symbol_is_summarised_by_the_first_sentence_of_its_documentation(tmp_path: Path) -> None:
    root = tmp_path / "plant"
    root.mkdir()
    (root / "pumps.py").write_text(PUMPS)
    (root / "README.md").write_text(
        "# Plant\n\nWaterPump is a thing that others describe. WaterPump is old.\n"
    )
    context = new_context(tmp_path / "home")
    ingest(context, WorkspaceSource(root))
    rows = [
        row
        for batch in context.store.scan("entities", columns=["name", "summary"])
        for row in batch.to_pylist()
    ]
    said = {row["name"]: row["summary"] for row in rows}
    assert said["pumps.WaterPump"] == "Lifts water to the roof."
    assert said["pumps.WaterPump.lift_water"] == "Lift water and say how much arrived."
    assert said["pumps.make_pump"] == ""


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Return the pump", "Return the pump"),
        ("Return v1.5 of it. More.\n\nParameters\n----------", "Return v1.5 of it."),
        ("x" * 500, ""),
        ("  \n", ""),
    ],
)
def test_the_first_sentence_of_the_first_paragraph_is_taken(docstring: str, expected: str) -> None:
    assert summarise_docstring(docstring) == expected
