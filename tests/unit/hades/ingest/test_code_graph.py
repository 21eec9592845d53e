"""The graph of code and history: which symbol contains, calls, inherits or overrides which, and
what touched it.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from hades.ingest.code_graph.corpus import CodeDocument
from hades.ingest.code_graph.names import CodeNames
from hades.ingest.ingest import Ingest
from hades.ingest.nodes import func_keys
from hades.ingest.phases import IngestContext
from tests.unit.hades.ingest.corpora import contents, new_context
from tests.unit.hades.ingest.sources.repositories import Repository

FILES: dict[str, str | bytes | None] = {
    "lib/__init__.py": "from .reader import Reader as PublicReader\n",
    "lib/base.py": (
        "class Base:\n    def open(self):\n        return self.close()\n\n    def close(self):\n   "
        "     pass\n"
    ),
    "lib/reader.py": (
        "from .base import Base\nimport lib.util as tools\n\n\n"
        "class Reader(Base):\n    def open(self):\n        tools.check()\n        super().open()\n"
        "        return self.close()\n"
    ),
    "lib/other.py": "class Reader:\n    pass\n",
    "lib/util.py": "def check():\n    pass\n",
    "tests/test_reader.py": (
        "from lib import PublicReader\n\n\ndef test_open():\n    PublicReader().open()\n    "
        "helper()\n\n\n"
        "def helper():\n    pass\n"
    ),
    "docs/guide.md": "# Guide\n\nUse `lib.reader.Reader` and `check()`, not `Reader`.\n",
}


class Graph:
    """Rows of a store with edges by the names of their ends."""

    def __init__(self, context: IngestContext) -> None:
        self.rows = contents(context.store)
        names = {f"funcs/{row['_key']}": row["qualified_name"] for row in self.rows["funcs"]}
        names |= {f"files/{row['_key']}": row["path"] for row in self.rows["files"]}
        names |= {
            f"doc_chunks/{row['_key']}": row["symbol"] or row["file_path"] or row["title"]
            for row in self.rows["doc_chunks"]
        }
        self.names = names
        self.texts = {f"documents/{row['_key']}": row["text"] for row in self.rows["documents"]}

    def edges(self, collection: str, kind: str) -> set[tuple[str, str]]:
        return {
            (self.names[row["_from"]], self.names[row["_to"]])
            for row in self.rows[collection]
            if row["type"] == kind
        }

    def places(self, collection: str, kind: str) -> dict[tuple[str, str], str]:
        found = {}
        for row in self.rows[collection]:
            if row["type"] == kind:
                start, end = row["provenance"]["span"]
                pair = (self.names[row["_from"]], self.names[row["_to"]])
                found[pair] = self.texts[row["provenance"]["doc"]][start:end]
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "ws")
    made.commit("Add the reader", FILES)
    return made


def graph(folder: Path, repository: Repository, **options: Any) -> Graph:
    context = new_context(folder)
    Ingest(context).workspace(repository.folder, **options)
    return Graph(context)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The files alone, without their history."""
    folder = tmp_path_factory.mktemp("code")
    made = Repository(folder / "ws")
    made.commit("Add the reader", FILES)
    return graph(folder, made, history=False)


def test_calls_are_resolved_through_imports_aliases_self_super_and_re_exports(found: Graph) -> None:
    assert found.places("imports", "calls") == {
        ("lib.base.Base.open", "lib.base.Base.close"): "self.close",
        ("lib.reader.Reader.open", "lib.util.check"): "tools.check",
        ("lib.reader.Reader.open", "lib.base.Base.open"): "super().open",
        ("lib.reader.Reader.open", "lib.base.Base.close"): "self.close",
        ("tests.test_reader.test_open", "lib.reader.Reader"): "PublicReader",
        ("tests.test_reader.test_open", "tests.test_reader.helper"): "helper",
    }
    assert (
        found.places("imports", "imports")["lib/reader.py", "lib/base.py"]
        == "from .base import Base"
    )


def test_classes_contain_inherit_and_override_and_two_of_one_name_stay_two(found: Graph) -> None:
    assert found.edges("imports", "inherits") == {("lib.reader.Reader", "lib.base.Base")}
    assert found.edges("imports", "overrides") == {("lib.reader.Reader.open", "lib.base.Base.open")}
    assert ("lib.base.Base", "lib.base.Base.open") in found.edges("contains", "contains")
    assert ("lib/base.py", "lib.base.Base.open") in found.edges("contains", "contains")
    entities = {row["name"] for row in found.rows["entities"]}
    assert {"lib.reader.Reader", "lib.other.Reader"} <= entities


def test_tests_and_pages_point_to_the_code_they_name(found: Graph) -> None:
    assert found.edges("imports", "tests") == {
        ("tests.test_reader.test_open", "lib.reader.Reader"),
        ("tests/test_reader.py", "lib/reader.py"),
    }
    assert found.places("chunk_code_edges", "documents") == {
        ("docs/guide.md", "lib.reader.Reader"): "lib.reader.Reader",
        ("docs/guide.md", "lib.util.check"): "check",
    }


def test_units_mention_the_entity_of_their_symbol(found: Graph) -> None:
    names = {f"entities/{row['_key']}": row["name"] for row in found.rows["entities"]}
    mentioned = {(found.names[row["_from"]], names[row["_to"]]) for row in found.rows["mentions"]}
    assert ("Reader.open", "lib.reader.Reader.open") in mentioned


def test_commits_are_passages_that_touched_files_and_symbols(
    tmp_path: Path, repository: Repository
) -> None:
    repository.commit(
        "Close twice\n\nReported by bob@example.org",
        {"lib/util.py": "def check():\n    return 1\n", "x.csv": "1\n"},
    )
    found = graph(tmp_path, repository)
    touched = found.edges("chunk_code_edges", "touched")
    assert {pair for pair in touched if pair[0] == "Close twice"} == {
        ("Close twice", "lib/util.py"),
        ("Close twice", "lib.util.check"),
    }
    commits = [row for row in found.rows["doc_chunks"] if row["kind"] == "commit"]
    assert {row["title"] for row in commits} == {"Add the reader", "Close twice"}
    assert not any(
        "@" in row["text"] for row in found.rows["documents"] if row["origin"].startswith("commit:")
    )
    assert all(
        row["valid_from"] is not None
        for row in found.rows["chunk_code_edges"]
        if row["type"] == "touched"
    )


def test_files_that_change_together_are_joined_and_recent_commits_count_more(
    tmp_path: Path, repository: Repository
) -> None:
    for number in range(3):
        repository.commit(
            f"pair {number}",
            {"lib/util.py": f"def check():\n    return {number}\n", "a.py": f"{number}"},
        )
    found = graph(tmp_path, repository)
    together = {
        frozenset((found.names[row["_from"]], found.names[row["_to"]])): (
            row["count"],
            row["weight"],
        )
        for row in found.rows["imports"]
        if row["type"] == "changes_with"
    }
    assert list(together) == [frozenset({"a.py", "lib/util.py"})]
    assert together[frozenset({"a.py", "lib/util.py"})] == (3, pytest.approx(0.95, abs=0.005))


def test_history_can_be_left_out_and_a_rewritten_one_replaces_the_old(
    tmp_path: Path, repository: Repository
) -> None:
    context = new_context(tmp_path)
    Ingest(context).workspace(repository.folder)
    repository.git("commit", "-q", "--amend", "-m", "Rewritten")
    Ingest(context).workspace(repository.folder)
    assert [
        row["title"] for row in contents(context.store)["doc_chunks"] if row["kind"] == "commit"
    ] == ["Rewritten"]
    Ingest(context).workspace(repository.folder, history=False)
    assert not [row for row in contents(context.store)["doc_chunks"] if row["kind"] == "commit"]


def write_module(classes: dict[str, list[str]]) -> CodeDocument:
    names = [f"m.{name}" for name in classes]
    symbols = [
        {
            "name": name.rpartition(".")[2],
            "qualified_name": f"m.{name}",
            "kind": "class",
            "bases": bases,
        }
        for name, bases in classes.items()
    ]
    keys = func_keys("d", names)
    funcs = list(zip(keys, names, strict=True))
    return CodeDocument(
        "d", "f", {"module": "m", "symbols": symbols}, funcs, {key: [0, 1] for key in keys}
    )


def test_bases_of_classes_in_a_circle_do_not_depend_on_the_order_of_questions() -> None:
    module = write_module({"A": ["B.In", "C"], "B": ["A.In"], "C": [], "C.In": [], "C.In.In": []})
    found = []
    for order in permutations(["m.A", "m.B", "m.C"]):
        names = CodeNames([module])
        found.append({name: names.ancestors(name) for name in order})
    assert all(one == found[0] for one in found)
    assert found[0]["m.A"] == ("m.C.In.In", "m.C")
    assert found[0]["m.B"] == ("m.C.In",)
