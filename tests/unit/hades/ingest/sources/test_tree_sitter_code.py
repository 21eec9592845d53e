"""Eight languages: one small file each, with its symbols, documentation, imports, calls and
bases.
"""

from __future__ import annotations

import pytest

from hades.ingest.parsers.languages import BY_NAME
from hades.ingest.parsers.tree_sitter import parse_code

JAVASCRIPT = """\
import def, {a as b, c} from "./util";
import * as ns from '../lib/index.js';
import "side";
const fs = require("fs");
/** Adds ünïcode. */
export function add(x, y) {
  return ns.sum(helper(x), y);
}
class Foo extends ns.Base {
  // Runs it
  run(a) { this.go(a); return new Bar(a).baz(); }
}
const arrow = async (q) => {
  function inner() { deep(); }
  await fetch(q);
};
"""
TYPESCRIPT = """\
import type { T } from "./types";
export { x as y } from "@scope/pkg";
/** A store. */
export interface Store<T> extends Base<T>, Other { get(k: string): T; }
namespace NS { export function f(x: number): number { return g(x); } }
// The service
@Injectable()
export class Service extends Parent implements Store<T> {
  private readonly h = (x: number) => x.toFixed();
  constructor(private a: A) { super(a); this.init?.(); }
}
"""
TSX = "// View of it\nexport function View() { return <Panel>{useStore()}</Panel>; }\n"
JAVA = """\
package com.x;
import java.util.List;
import static java.lang.Math.max;
import com.y.*;
/**
 * Foo does.
 */
@Deprecated
public class Foo<T> extends Base<T> implements Runnable, A.B {
  public Foo() { this.init(); }
  /** Runs. */
  @Override
  public void run() { max(1, 2); List.of(1); new Bar(); obj.call().chain(); }
}
"""
GO = """\
package store
import (
  "fmt"
  u "example.com/x/util"
)
// Store keeps things.
// For long.
type Store struct { x int }

func (s *Store) Get(k string) (string, error) {
  fmt.Println(k)
  return u.Join(s.path(k)), nil
}
func New() *Store { return build() }
"""
RUST = """\
use std::collections::{HashMap, hash_map::{self, Entry as E}};
use crate::util::helper;
use super::base;
/// A client.
#[derive(Debug)]
pub struct Client { x: u8 }
impl Drop for Client { fn drop(&mut self) { self.close(); } }
impl<T> Wrapper<T> {
    pub fn new(x: T) -> Self { helper(x); Vec::<u8>::new(); Self::make() }
}
mod tests { fn t() { super::run(); } }
"""
C = """\
#include <stdio.h>
#include "../util.h"
/* Node of a list. */
typedef struct { int x; } Node;
struct Forward;
static char *make(int x) {
  printf("%d", x);
  s->fn(x);
  return alloc(x);
}
int declared(int);
"""
CPP = """\
#include "a.hpp"
namespace ns {
/// A shape.
template <typename T>
class Shape : public Base<T>, private Other {
 public:
  virtual ~Shape() {}
  int area() const { return std::max<int>(1, 2); }
};
int Shape::proto() { auto p = new Foo(); return p->run(); }
}
"""
RUBY = """\
require "json"
require_relative "../util"
# What is outside
module Outer
  class Foo < Base::Thing
    # Runs it
    def run(a)
      puts a
      @x.go(a)
    end
    def self.make; new; end
  end
end
"""

CASES = {
    "javascript": (
        JAVASCRIPT,
        "src/app/main.js",
        {"function": ["add", "arrow"], "class": ["Foo"], "method": ["Foo.run"]},
        {"add": "Adds ünïcode.", "Foo.run": "// Runs it"},
        {"add": {"ns.sum", "helper"}, "Foo.run": {"this.go", "Bar"}, "arrow": {"deep", "fetch"}},
        {"Foo": ("ns.Base",)},
        [
            ("src.app.util", "default", "def"),
            ("src.app.util", "a", "b"),
            ("src.app.util", "c", None),
            ("src.lib", None, "ns"),
            ("side", None, None),
            ("fs", None, None),
        ],
    ),
    "typescript": (
        TYPESCRIPT,
        "web/a.ts",
        {
            "class": ["Store", "Service"],
            "function": ["NS.f"],
            "method": ["Service.h", "Service.constructor"],
        },
        {"Store": "A store.", "Service": "// The service"},
        {"NS.f": {"g"}, "Service.h": {"x.toFixed"}, "Service.constructor": {"super", "this.init"}},
        {"Store": ("Base", "Other"), "Service": ("Parent", "Store")},
        [("web.types", "T", None), ("@scope/pkg", "x", "y")],
    ),
    "tsx": (
        TSX,
        "view.tsx",
        {"function": ["View"]},
        {"View": "// View of it"},
        {"View": {"useStore"}},
        {},
        [],
    ),
    "java": (
        JAVA,
        "src/com/x/Foo.java",
        {"class": ["Foo"], "method": ["Foo.Foo", "Foo.run"]},
        {"Foo": "Foo does.", "Foo.run": "Runs."},
        {"Foo.Foo": {"this.init"}, "Foo.run": {"max", "List.of", "Bar", "obj.call"}},
        {"Foo": ("Base", "Runnable", "A.B")},
        [("java.util", "List", None), ("java.lang.Math", "max", None), ("com.y", "*", None)],
    ),
    "go": (
        GO,
        "pkg/store/file.go",
        {"class": ["Store"], "method": ["Store.Get"], "function": ["New"]},
        {"Store": "// Store keeps things.\n// For long."},
        {"Store.Get": {"fmt.Println", "u.Join", "s.path"}, "New": {"build"}},
        {},
        [("fmt", None, "fmt"), ("example.com/x/util", None, "u")],
    ),
    "rust": (
        RUST,
        "crates/foo/src/net/mod.rs",
        {"class": ["Client"], "method": ["Client.drop", "Wrapper.new"], "function": ["tests.t"]},
        {"Client": "/// A client."},
        {
            "Client.drop": {"self.close"},
            "Wrapper.new": {"helper", "Vec.new", "Self.make"},
            "tests.t": {"super.run"},
        },
        {"Client": ("Drop",)},
        [
            ("std.collections", "HashMap", None),
            ("std.collections", "hash_map", None),
            ("std.collections.hash_map", "Entry", "E"),
            ("crates.foo.src.util", "helper", None),
            ("crates.foo.src", "base", None),
        ],
    ),
    "c": (
        C,
        "src/a/b.c",
        {"class": ["Node"], "function": ["make"]},
        {"Node": "Node of a list."},
        {"make": {"printf", "s.fn", "alloc"}},
        {},
        [("stdio", None, None), ("src.util", None, None)],
    ),
    "cpp": (
        CPP,
        "src/a.cpp",
        {"class": ["ns.Shape"], "method": ["ns.Shape.~Shape", "ns.Shape.area", "ns.Shape.proto"]},
        {"ns.Shape": "/// A shape."},
        {"ns.Shape.area": {"std.max"}, "ns.Shape.proto": {"Foo", "p.run"}},
        {"ns.Shape": ("Base", "Other")},
        [("src.a", None, None)],
    ),
    "ruby": (
        RUBY,
        "lib/a/b.rb",
        {"class": ["Outer", "Outer.Foo"], "method": ["Outer.Foo.run", "Outer.Foo.make"]},
        {"Outer": "# What is outside", "Outer.Foo.run": "# Runs it"},
        {"Outer.Foo.run": {"puts", "@x.go"}},
        {"Outer.Foo": ("Base.Thing",)},
        [("json", None, None), ("lib.util", None, None)],
    ),
}
MODULES = {
    "javascript": "src.app.main",
    "typescript": "web.a",
    "tsx": "view",
    "java": "com.x",
    "go": "pkg.store",
    "rust": "crates.foo.src.net",
    "c": "src.a.b",
    "cpp": "src.a",
    "ruby": "lib.a.b",
}


@pytest.mark.parametrize("language", CASES)
def test_symbols_documentation_calls_bases_and_imports(language: str) -> None:
    source, path, kinds, docs, calls, bases, imports = CASES[language]
    found = parse_code(source, path, language)
    prefix = MODULES[language] + "."
    local = {one.qualified_name.removeprefix(prefix): one for one in found.symbols}
    by_kind: dict[str, list[str]] = {}
    for name, symbol in local.items():
        by_kind.setdefault(symbol.kind, []).append(name)
    assert by_kind == kinds
    assert set(docs.values()) <= {source[start:end] for start, end in found.prose}
    for name, text in docs.items():
        unit = next(one for one in found.sections if one.symbol == name)
        assert text in source[unit.start : unit.end]
    assert {name: set(local[name].calls) for name in calls} == calls
    assert {name: one.bases for name, one in local.items() if one.bases} == bases
    assert [tuple(one)[:3] for one in found.imports] == imports


def test_every_suffix_has_a_case() -> None:
    assert set(BY_NAME) == set(CASES)


def test_spans_count_characters_although_the_parser_counts_bytes() -> None:
    source = "// ünïcödé über ällés\nfunction größe(ä) { return 'ß'; }\n"
    symbol = parse_code(source, "a.js", "javascript").symbols[0]
    assert source[symbol.start : symbol.end] == "function größe(ä) { return 'ß'; }"
    assert symbol.signature == "function größe(ä)"


def test_java_files_are_imported_by_class() -> None:
    assert parse_code(JAVA, "src/com/x/Foo.java", "java").module == "com.x.Foo"


def test_an_exported_function_is_not_an_import_however_it_speaks() -> None:
    source = 'export function f() {\n  // taken from "elsewhere"\n  return 1;\n}\n'
    assert parse_code(source, "a.js", "javascript").imports == ()


def test_broken_code_still_gives_what_can_be_read() -> None:
    found = parse_code("function good() { a(); }\nfunction ( { ] ]\n", "a.js", "javascript")
    assert found.symbols[0].name == "good"
    assert found.symbols[0].calls == ("a",)


LONG = {
    "javascript": ("function long(a) {", "  if (a) {\n    a = [\n      1,\n    ];\n  }\n", "}"),
    "typescript": (
        "function long(a: any) {",
        "  if (a) {\n    a = [\n      1,\n    ];\n  }\n",
        "}",
    ),
    "tsx": ("function long(a: any) {", "  if (a) {\n    a = [\n      1,\n    ];\n  }\n", "}"),
    "java": (
        "class A { int x;\n  void long_(int a) {",
        "  if (a > 0) {\n    a = f(\n      1\n    );\n  }\n",
        "}\n}",
    ),
    "go": (
        "package p\nfunc long(a int) {",
        "  if a > 0 {\n    a = f(\n      1,\n    )\n  }\n",
        "}",
    ),
    "rust": ("fn long(a: i32) {", "  if a > 0 {\n    f(\n      1,\n    );\n  }\n", "}"),
    "c": ("void long_(int a) {", "  if (a) {\n    a = f(\n      1\n    );\n  }\n", "}"),
    "cpp": ("void long_(int a) {", "  if (a) {\n    a = f(\n      1\n    );\n  }\n", "}"),
    "ruby": ("def long(a)", "  if a\n    a = f(\n      1\n    )\n  end\n", "end"),
}


@pytest.mark.parametrize("language", sorted(BY_NAME))
def test_long_functions_are_divided_at_statements(language: str) -> None:
    head, step, tail = LONG[language]
    source = f"{head}\n{step * 90}{tail}\n"
    found = [
        one
        for one in parse_code(source, "a.x", language).sections
        if one.kind in ("function", "method")
    ]
    assert len(found) > 2
    assert {source[one.start :].split("\n", maxsplit=1)[0] for one in found[1:]} == {
        step.split("\n")[0]
    }
    assert {len(one.headings) for one in found[1:]} == {2}
