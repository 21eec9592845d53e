"""What each tree-sitter grammar calls things. Another language is one more entry here and one more test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hades.ingest.sources import import_forms
from hades.ingest.sources.code_facts import ImportFact


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True)
class Language:
    """Node kinds of one grammar, by the part they play."""

    name: str
    suffixes: tuple[str, ...]
    grammar: str  # module that holds the grammar
    classes: frozenset[str]
    functions: frozenset[str]
    calls: dict[str, tuple[str, str]]  # kind -> fields of the receiver (may be "") and of what is called
    imports: frozenset[str]
    imported: Callable[[str, str], Iterator[ImportFact]]  # text of the import, path of the file -> facts
    module: Callable[[str], str]  # path of the file -> name it is imported by
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


_JAVASCRIPT_CALLS = {"call_expression": ("", "function"), "new_expression": ("", "constructor")}
_JAVASCRIPT_FUNCTIONS = _kinds("function_declaration generator_function_declaration method_definition")
_C_TYPES = _kinds("struct_specifier union_specifier enum_specifier type_definition")

_JAVASCRIPT = Language(
    name="javascript",
    suffixes=(".js", ".jsx", ".mjs", ".cjs"),
    grammar="tree_sitter_javascript",
    classes=_kinds("class_declaration"),
    functions=_JAVASCRIPT_FUNCTIONS,
    holders=_kinds("variable_declarator field_definition"),
    calls=_JAVASCRIPT_CALLS,
    imports=_kinds("import_statement export_statement"),
    import_field="source",
    imported=import_forms.javascript,
    module=import_forms.script_module,
    bases=_kinds("class_heritage"),
)
_TYPESCRIPT = Language(
    name="typescript",
    suffixes=(".ts", ".mts", ".cts"),
    grammar="tree_sitter_typescript",
    loader="language_typescript",
    classes=_kinds("class_declaration abstract_class_declaration interface_declaration enum_declaration"),
    functions=_JAVASCRIPT_FUNCTIONS,
    holders=_kinds("variable_declarator public_field_definition"),
    calls=_JAVASCRIPT_CALLS,
    imports=_kinds("import_statement export_statement"),
    import_field="source",
    imported=import_forms.javascript,
    module=import_forms.script_module,
    scopes=_kinds("internal_module module"),
    bases=_kinds("extends_clause implements_clause extends_type_clause"),
)
_TSX = Language(**{**vars(_TYPESCRIPT), "name": "tsx", "suffixes": (".tsx",), "loader": "language_tsx"})
_JAVA = Language(
    name="java",
    suffixes=(".java",),
    grammar="tree_sitter_java",
    classes=_kinds("class_declaration interface_declaration enum_declaration record_declaration"),
    functions=_kinds("method_declaration constructor_declaration"),
    calls={"method_invocation": ("object", "name"), "object_creation_expression": ("", "type")},
    imports=_kinds("import_declaration"),
    imported=import_forms.java,
    module=import_forms.path_module,
    comments=_kinds("line_comment block_comment"),
    bases=_kinds("superclass super_interfaces extends_interfaces"),
)
_GO = Language(
    name="go",
    suffixes=(".go",),
    grammar="tree_sitter_go",
    classes=_kinds("type_spec"),
    functions=_kinds("function_declaration method_declaration"),
    calls={"call_expression": ("", "function")},
    imports=_kinds("import_spec"),
    imported=import_forms.go,
    module=import_forms.folder_module,
)
_RUST = Language(
    name="rust",
    suffixes=(".rs",),
    grammar="tree_sitter_rust",
    classes=_kinds("struct_item enum_item union_item trait_item"),
    functions=_kinds("function_item"),
    calls={"call_expression": ("", "function")},
    imports=_kinds("use_declaration"),
    imported=import_forms.rust,
    module=import_forms.rust_module,
    comments=_kinds("line_comment block_comment"),
    scopes=_kinds("mod_item"),
    implementations=_kinds("impl_item"),
)
_C = Language(
    name="c",
    suffixes=(".c",),
    grammar="tree_sitter_c",
    classes=_C_TYPES,
    functions=_kinds("function_definition"),
    calls={"call_expression": ("", "function")},
    imports=_kinds("preproc_include"),
    imported=import_forms.c,
    module=import_forms.path_module,
    needs_body=_C_TYPES,
)
_CPP = Language(
    name="cpp",
    suffixes=(".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh", ".hxx"),  # C headers parse as C++, not the reverse
    grammar="tree_sitter_cpp",
    classes=_C_TYPES | _kinds("class_specifier"),
    functions=_kinds("function_definition"),
    calls={"call_expression": ("", "function"), "new_expression": ("", "type")},
    imports=_kinds("preproc_include"),
    imported=import_forms.c,
    module=import_forms.path_module,
    scopes=_kinds("namespace_definition"),
    bases=_kinds("base_class_clause"),
    needs_body=_C_TYPES | _kinds("class_specifier"),
)
_RUBY = Language(
    name="ruby",
    suffixes=(".rb",),
    grammar="tree_sitter_ruby",
    classes=_kinds("class module"),
    functions=_kinds("method singleton_method"),
    calls={"call": ("receiver", "method")},
    imports=_kinds("call"),
    imported=import_forms.ruby,
    module=import_forms.path_module,
    bases=_kinds("superclass"),
    header_is_one_line=True,
)

LANGUAGES = (_JAVASCRIPT, _TYPESCRIPT, _TSX, _JAVA, _GO, _RUST, _C, _CPP, _RUBY)
BY_NAME = {language.name: language for language in LANGUAGES}
BY_SUFFIX = {suffix: language.name for language in LANGUAGES for suffix in language.suffixes}
