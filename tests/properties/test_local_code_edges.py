"""Edges of code that keep what a change does not reach are those of a derivation from scratch, after any history."""

from __future__ import annotations

import random
import tempfile
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.code_graph.tables import CodeDerivation, derive_code
from hades.ingest.nodes import document_key, func_keys
from schemas.catalogue import collection_named
from schemas.ids import content_key, node_id
from schemas.record import canonical_json
from schemas.sources import SourceKind
from tests.patience import examples

Row = dict[str, Any]
# Names that act on each other: one name in several modules, packages that export again, modules of one last name, a
# test and what it tests, a file without a module.
MODULES = {
    "a.py": "a",
    "b.py": "b",
    "pkg/__init__.py": "pkg",
    "pkg/c.py": "pkg.c",
    "other/c.py": "other.c",
    "tests/test_a.py": "tests.test_a",
    "tests/test_c.py": "tests.test_c",
    "lib/x.c": "",
    "web/y.js": "",
}
SYMBOLS = ("Foo", "Foo.run", "Foo.stop", "Foo.Inner", "Foo.Inner.run", "Bar", "Bar.run", "Baz", "helper", "helper.run")
RARE = ("seldom", "hardly", "Foo.scarce")  # a name that one file has at most, most of the time
BASES = ("Foo", "Bar", "Baz", "pkg.Foo", "b.Bar", "c.Baz", "Foo.Inner", "Thing", "self.Inner")
CALLS = (
    *(
        "helper",
        "self.run",
        "self.stop",
        "super().run",
        "cls.run",
        "Foo",
        "Foo.run",
        "pkg.Foo",
        "c.Foo.run",
        "b.helper",
    ),
    *(
        "Bar.Inner.run",
        "Thing.stop",
        "Thing",
        "pkg.Thing.run",
        "print",
        "a",
        "self",
        "seldom",
        "a.hardly",
        "self.scarce",
    ),
)
TEXTS = ("See `Foo` and pkg.c.Foo.run.", "Call `helper()` of a.helper.", "`Foo.run`, pkg.Thing.stop, `Baz`", "Nothing.")
KINDS = {"Foo": "class", "Bar": "class", "Baz": "class", "Inner": "class", "helper": "function"}


def write_code(path: str, chance: random.Random) -> Row:
    module = MODULES[path]
    names = [one for one in SYMBOLS if chance.random() < 0.4] + chance.choices(SYMBOLS, k=chance.randint(0, 1))
    names += [one for one in RARE if chance.random() < 0.05]
    symbols = []
    for name in names:
        last = name.rpartition(".")[2]
        symbols.append(
            {
                "name": last,
                "qualified_name": f"{module}.{name}" if module else name,
                "kind": KINDS.get(last, "method"),
                "calls": [[call, *([5, 9] if chance.random() < 0.5 else [])] for call in chance.choices(CALLS, k=2)],
                "bases": chance.choices(BASES, k=chance.randint(0, 2)) if KINDS.get(last) == "class" else [],
            }
        )
    imports = [
        [
            chance.choice([*MODULES.values(), "os"]),
            chance.choice((None, "*", "Foo", "Bar", "helper", "c", "Thing")),
            chance.choice((None, None, "Thing", "c")),
            None,
            *[0, 4],
        ]
        for _ in range(chance.randint(0, 3))
    ]
    return {"path": path, "module": module, "symbols": symbols, "imports": imports}


def write_document(number: int, chance: random.Random) -> Row:
    """A code file, a page or a commit, with its chunks."""
    if number < len(MODULES):
        path = list(MODULES)[number]
        code = write_code(path, chance)
        begins = [10 * place for place, _ in enumerate(code["symbols"])]
        spans = [[begin, begin + chance.choice((10, 30))] for begin in begins]
        chunks = [(span, "", "text", "x") for span in spans] + [([0, 30], chance.choice(TEXTS), "prose", None)]
        return {"origin": path, "facts": {"code": code}, "spans": spans, "chunks": chunks, "created": None}
    if number % 2:
        chunks = [([0, 40], chance.choice(TEXTS), "prose", None), ([40, 80], chance.choice(TEXTS), "prose", None)]
        return {"origin": f"{number}.md", "facts": {}, "spans": [], "chunks": chunks, "created": None}
    files = [[path, chance.choices(("Foo", "run", "helper"), k=2)] for path in chance.sample(list(MODULES), 2)]
    return {
        "origin": f"commit:{number}",
        "facts": {"commit": {"id": str(number), "corpus": "ws", "files": files}},
        "spans": [],
        "chunks": [([0, 9], "Mend it.", "prose", None)],
        "created": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=chance.randint(0, 400)),
    }


def amend(document: Row, chance: random.Random) -> Row:
    """The document with a part of it changed."""
    made = deepcopy(document)
    code = made["facts"].get("code")
    what = chance.randrange(4)
    if not code or what == 0:
        made["chunks"] = made["chunks"][: chance.randint(1, 9)]
    elif what == 1:
        made["spans"] = [[begin, end + chance.choice((0, 20))] for begin, end in made["spans"]]
    elif what == 2:
        code["imports"] = code["imports"][1:]
    else:
        code["symbols"], made["spans"] = code["symbols"][:-1], made["spans"][:-1]
    return made


def build_tables(held: list[Row]) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
    documents: list[Row] = []
    chunks: list[Row] = []
    funcs: list[Row] = []
    files: list[Row] = []
    for one in held:
        key = document_key(SourceKind.WORKSPACE, one["origin"], "ws")
        owner = node_id("documents", key)
        facts = canonical_json(one["facts"])
        documents.append(
            {"_key": key, "origin": one["origin"], "created": one["created"], "length": 80, "facts": facts}
        )
        for place, (span, text, kind, symbol) in enumerate(one["chunks"]):
            row = {"_key": content_key("c", key, str(place)), "document": owner, "text": text}
            chunks.append({**row, "span": span, "symbol": symbol, "kind": kind})
        if "code" in one["facts"]:
            files.append({"_key": content_key("file", key), "document": owner, "path": one["origin"]})
            names = [symbol["qualified_name"] for symbol in one["facts"]["code"]["symbols"]]
            for func, name, span in zip(func_keys(key, names), names, one["spans"], strict=True):
                funcs.append({"_key": func, "qualified_name": name, "document": owner, "span": span})
    length = pa.field("length", pa.int64())
    return (
        table("documents", documents, ("_key", "origin", "created", "facts"), length),
        table("doc_chunks", chunks, ("_key", "document", "text", "span", "symbol", "kind")),
        table("funcs", funcs, ("_key", "qualified_name", "document", "span")),
        table("files", files, ("_key", "document", "path")),
    )


def table(collection: str, rows: list[Row], names: tuple[str, ...], *others: pa.Field) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    return pa.Table.from_pylist(rows, schema=pa.schema([*(declared.schema.field(name) for name in names), *others]))


def shown(derived: CodeDerivation) -> Row:
    tables = {**derived.tables, "funcs": derived.funcs}
    return {**{name: rows.to_pylist() for name, rows in tables.items()}, "paths": derived.paths}


def damage(folder: Path, chance: random.Random) -> None:
    file = chance.choice(sorted((folder / "code-edges").iterdir()))
    data = bytearray(file.read_bytes())
    if chance.random() < 0.5:
        file.unlink()
    else:
        data[chance.randrange(len(data))] ^= 1
        file.write_bytes(bytes(data))


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_any_history_gives_the_edges_of_a_derivation_from_scratch(seed: int, is_damaged: bool) -> None:
    chance = random.Random(seed)
    n_documents = len(MODULES) + 6
    held = {number: write_document(number, chance) for number in range(n_documents) if chance.random() < 0.6}
    with tempfile.TemporaryDirectory() as folder:
        for step in range(8):
            for _ in range(chance.randint(0, 2) if step else 0):
                number = chance.randrange(n_documents)
                if chance.random() < 0.3:
                    held.pop(number, None)
                elif number in held and chance.random() < 0.6:
                    held[number] = amend(held[number], chance)
                else:
                    held[number] = write_document(number, chance)
            if step == 4 and is_damaged:
                damage(Path(folder), chance)
            rows = list(held.values())
            chance.shuffle(rows)
            tables = build_tables(rows)
            assert shown(derive_code(*tables, Path(folder))) == shown(derive_code(*tables))
