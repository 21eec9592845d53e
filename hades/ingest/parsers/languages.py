"""How each language writes an import and names a module, and what each tree-sitter grammar calls
things.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from hades.ingest.parsers.facts import ModuleImport

_QUOTED = re.compile(r"""["'`<]([^"'`<>\n]{1,300})["'`>]""")
_FROM = re.compile(r"""\bfrom\s*["']([^"'\n]{1,300})["']""")
_BARE = re.compile(r"""^import\s*["']([^"'\n]{1,300})["']""")
_SCRIPT_SUFFIX = re.compile(r"\.(?:d\.ts|[cm]?[jt]sx?)$")
_NAME = re.compile(r"[\w$]+|\*")


def python_module(
    path: str,
    is_package: Callable[[str], bool],
    root_name: str = "",
) -> str:
    """The dotted name a file is imported by.

    From the outermost folder with an `__init__.py`; where its folder has none, from below the last
    `src`, else from the root. `is_package` answers for folders relative to the root, `""` being the
    root itself, then named `root_name`.
    """
    *folders, file = path.split("/")
    stem = file.rpartition(".")[0]
    first = len(folders)

    while first and is_package("/".join(folders[:first])):
        first -= 1

    if first == len(folders):
        if "src" in folders:
            first = len(folders) - folders[::-1].index("src")
        else:
            first = 0

    names = [*folders[first:], *([] if stem == "__init__" else [stem])]
    if first == 0 and root_name and is_package(""):
        names.insert(0, root_name)

    return ".".join(names) or stem


def script_module(path: str) -> str:
    """`src/util/index.ts` -> `src.util`."""
    return _SCRIPT_SUFFIX.sub("", path).removesuffix("/index").replace("/", ".")


def path_module(path: str) -> str:
    """`lib/net/http.rb` -> `lib.net.http`."""
    return posixpath.splitext(path)[0].replace("/", ".")


def folder_module(path: str) -> str:
    """`pkg/store/file.go` -> `pkg.store`: in Go the folder is what is imported."""
    return posixpath.dirname(path).replace("/", ".") or path_module(path)


def rust_module(path: str) -> str:
    """`src/net/mod.rs` -> `src.net`; the root of a crate is the folder of its `lib.rs`."""
    stem = posixpath.splitext(path)[0]
    folder, name = posixpath.split(stem)
    return (folder if name in ("mod", "lib", "main") and folder else stem).replace(
        "/",
        ".",
    )


def javascript(text: str, path: str) -> Iterator[ModuleImport]:
    """`import d, {a as b}, * as n from "./x"`, `export {a} from "./x"`, `import "./x"`."""
    sources = list(_FROM.finditer(text)) or list(_BARE.finditer(text))
    if not sources:
        return

    module = _script_target(sources[-1].group(1), path)
    clause = text[: sources[-1].start()]
    names_outside, brace, inside = clause.partition("{")
    names = re.sub(
        r"^(import|export)\b\s*(type(\s+|$))?",
        "",
        names_outside.strip(),
    ).split(",")
    default = next(
        (name.strip() for name in names if name.strip() and "*" not in name),
        None,
    )
    star = re.search(r"\*\s+as\s+([\w$]+)", names_outside)

    if default:
        yield ModuleImport(module, "default", default)
    if star:
        yield ModuleImport(module, None, star.group(1))

    for part in inside.partition("}")[0].split(","):
        words = []
        for word in _NAME.findall(part):
            if word != "type":
                words.append(word)

        if words:
            yield ModuleImport(
                module,
                words[0],
                words[2] if len(words) == 3 and words[1] == "as" else None,
            )

    if not (default or star or brace):
        yield ModuleImport(module)


def require(argument: str, path: str) -> Iterator[ModuleImport]:
    """`require("./x")` in JavaScript."""
    quoted = _QUOTED.search(argument)
    if quoted:
        yield ModuleImport(_script_target(quoted.group(1), path))


def java(text: str, path: str) -> Iterator[ModuleImport]:
    """`import a.b.C;` reads as C from a.b; `import static a.B.c;` as c from a.B."""
    name = re.sub(
        r"\s+",
        "",
        re.sub(r"^import\s+(static\s+)?", "", text),
    ).rstrip(";")
    module, _, last = name.rpartition(".")

    if last:
        yield ModuleImport(module or last, last if module else None)


def go(text: str, path: str) -> Iterator[ModuleImport]:
    """`alias "host/path/pkg"`, used as `pkg`; the path is kept as written, only the workspace knows
    its own prefix.
    """
    quoted = _QUOTED.search(text)
    if quoted:
        alias = text[: quoted.start()].strip().strip("_.")
        yield ModuleImport(
            quoted.group(1),
            None,
            alias or posixpath.basename(quoted.group(1)),
        )


def c(text: str, path: str) -> Iterator[ModuleImport]:
    """`#include "x.h"` beside the file, `#include <x.h>` wherever the compiler finds it."""
    quoted = _QUOTED.search(text)
    if quoted:
        target = quoted.group(1)
        yield ModuleImport(path_module(_beside(target, path) if '"' in text else target))


def ruby(text: str, path: str) -> Iterator[ModuleImport]:
    """`require "x"`, `require_relative "../x"`."""
    match = re.match(
        r"(require|require_relative|load)\b\s*\(?\s*[\"']([^\"'\n]{1,300})[\"']",
        text,
    )
    if match:
        target = match.group(2).removesuffix(".rb")
        relative = match.group(1) == "require_relative"
        yield ModuleImport((_beside(target, path) if relative else target).replace("/", "."))


def rust(text: str, path: str) -> Iterator[ModuleImport]:
    """`use a::{b, c::{d as e, *}}`, with `crate`, `self` and `super` resolved from the file's
    place.
    """
    body = re.sub(r"^(pub(\s*\([^)]*\))?\s+)?use\s+", "", text).rstrip().rstrip(";")
    prefixes: list[list[str]] = [[]]
    current: list[str] = []
    alias = ""

    for token in re.findall(r"\bas\s+\w+|\w+|::|[{},*]", body):
        if token == "{":
            prefixes.append([*prefixes[-1], *current])
            current = []
        elif token in ",}":
            yield from _rust_fact(
                [*prefixes[-1], *current] if current else [],
                alias,
                path,
            )
            current = []
            alias = ""

            if token == "}" and len(prefixes) > 1:
                prefixes.pop()
        elif token[:2] == "as" and token[2:3].isspace():
            alias = token[2:].strip()
        elif token != "::":
            current.append(token)

    yield from _rust_fact(
        [*prefixes[-1], *current] if current else [],
        alias,
        path,
    )


def _rust_fact(
    parts: list[str],
    alias: str,
    path: str,
) -> Iterator[ModuleImport]:
    if parts and parts[-1] == "self" and len(parts) > 1:
        parts = parts[:-1]

    module = rust_module(path).split(".")
    if parts and parts[0] in ("crate", "self", "super"):
        base = _crate_root(path) if parts[0] == "crate" else module
        while parts and parts[0] in ("crate", "self", "super"):
            base = base[:-1] if parts[0] == "super" else base
            parts = parts[1:]

        parts = [*base, *parts]

    if len(parts) > 1:
        yield ModuleImport(
            ".".join(parts[:-1]),
            parts[-1],
            alias or None,
        )
    elif parts:
        yield ModuleImport(parts[0], None, alias or None)


def _crate_root(path: str) -> list[str]:
    folders = path.split("/")[:-1]
    if "src" in folders:
        return folders[: len(folders) - folders[::-1].index("src")]
    return folders[:1]


def _script_target(target: str, path: str) -> str:
    if target.startswith("."):
        return script_module(_beside(target, path))
    return target


def _beside(target: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True)
class Language:
    """Node kinds of one tree-sitter grammar, by the part they play. Another one is one more entry
    here and one test.
    """

    name: str
    suffixes: tuple[str, ...]
    classes: frozenset[str]
    functions: frozenset[str]
    imports: frozenset[str]
    # text of the import, path of the file -> facts
    imported: Callable[[str, str], Iterator[ModuleImport]]
    grammar: str = ""  # package that holds the grammar, where it is not named like the language
    # kind -> fields of the receiver (may be "") and of what is called
    calls: dict[str, tuple[str, str]] = field(
        default_factory=lambda: {"call_expression": ("", "function")}
    )
    module: Callable[[str], str] = path_module  # path of the file -> name it is imported by
    import_field: str = ""  # the statement is an import only when it has this field
    loader: str = "language"
    comments: frozenset[str] = frozenset({"comment"})
    scopes: frozenset[str] = frozenset()  # name a region without being a symbol: namespaces
    implementations: frozenset[str] = frozenset()  # name a type whose methods they hold
    bases: frozenset[str] = frozenset()
    holders: frozenset[str] = frozenset()  # a name whose value may be a function
    header_is_one_line: bool = False
    needs_body: frozenset[str] = frozenset()  # a declaration only when it has a body

    @property
    def naming(self) -> frozenset[str]:
        """Nodes that name a region."""
        return self.classes | self.functions | self.scopes | self.implementations | self.holders

    @property
    def noted(self) -> frozenset[str]:
        """Nodes that say something about the region they stand in."""
        return self.imports | self.comments | self.bases | self.calls.keys()


_C_TYPES = _kinds("struct_specifier union_specifier enum_specifier type_definition")
_JAVASCRIPT = Language(
    name="javascript",
    suffixes=(".js", ".jsx", ".mjs", ".cjs"),
    classes=_kinds("class_declaration"),
    functions=_kinds("function_declaration generator_function_declaration method_definition"),
    holders=_kinds("variable_declarator field_definition"),
    calls={
        "call_expression": ("", "function"),
        "new_expression": ("", "constructor"),
    },
    imports=_kinds("import_statement export_statement"),
    import_field="source",
    imported=javascript,
    module=script_module,
    bases=_kinds("class_heritage"),
)
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    name="typescript",
    suffixes=(".ts", ".mts", ".cts"),
    grammar="typescript",
    loader="language_typescript",
    classes=_kinds(
        "class_declaration abstract_class_declaration interface_declaration enum_declaration"
    ),
    holders=_kinds("variable_declarator public_field_definition"),
    scopes=_kinds("internal_module module"),
    bases=_kinds("extends_clause implements_clause extends_type_clause"),
)
_TSX = replace(
    _TYPESCRIPT,
    name="tsx",
    suffixes=(".tsx",),
    loader="language_tsx",
)
_JAVA = Language(
    name="java",
    suffixes=(".java",),
    classes=_kinds("class_declaration interface_declaration enum_declaration record_declaration"),
    functions=_kinds("method_declaration constructor_declaration"),
    calls={
        "method_invocation": ("object", "name"),
        "object_creation_expression": ("", "type"),
    },
    imports=_kinds("import_declaration"),
    imported=java,
    comments=_kinds("line_comment block_comment"),
    bases=_kinds("superclass super_interfaces extends_interfaces"),
)
_GO = Language(
    name="go",
    suffixes=(".go",),
    classes=_kinds("type_spec"),
    functions=_kinds("function_declaration method_declaration"),
    imports=_kinds("import_spec"),
    imported=go,
    module=folder_module,
)
_RUST = Language(
    name="rust",
    suffixes=(".rs",),
    classes=_kinds("struct_item enum_item union_item trait_item"),
    functions=_kinds("function_item"),
    imports=_kinds("use_declaration"),
    imported=rust,
    module=rust_module,
    comments=_kinds("line_comment block_comment"),
    scopes=_kinds("mod_item"),
    implementations=_kinds("impl_item"),
)
_C = Language(
    name="c",
    suffixes=(".c",),
    classes=_C_TYPES,
    functions=_kinds("function_definition"),
    imports=_kinds("preproc_include"),
    imported=c,
    needs_body=_C_TYPES,
)
_CPP = replace(
    _C,
    name="cpp",
    suffixes=(
        ".cpp",
        ".cc",
        ".cxx",
        ".h",
        ".hpp",
        ".hh",
        ".hxx",
    ),  # C headers parse as C++, not the reverse
    classes=_C_TYPES | _kinds("class_specifier"),
    calls={
        "call_expression": ("", "function"),
        "new_expression": ("", "type"),
    },
    scopes=_kinds("namespace_definition"),
    bases=_kinds("base_class_clause"),
    needs_body=_C_TYPES | _kinds("class_specifier"),
)
_RUBY = Language(
    name="ruby",
    suffixes=(".rb",),
    classes=_kinds("class module"),
    functions=_kinds("method singleton_method"),
    calls={"call": ("receiver", "method")},
    imports=_kinds("call"),
    imported=ruby,
    bases=_kinds("superclass"),
    header_is_one_line=True,
)
BY_NAME = {
    language.name: language
    for language in (_JAVASCRIPT, _TYPESCRIPT, _TSX, _JAVA, _GO, _RUST, _C, _CPP, _RUBY)
}
CODE_SUFFIXES = {".py": "python", ".pyi": "python"}
for _language in BY_NAME.values():
    CODE_SUFFIXES |= dict.fromkeys(_language.suffixes, _language.name)
