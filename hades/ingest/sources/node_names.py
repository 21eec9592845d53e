"""Names in a syntax tree: what a definition is called, what a call calls, which classes a class extends."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hades.ingest.sources.languages import Language

_MAX_NAME_BYTES = 200
_TYPE_ARGUMENTS = re.compile(r"(?:::)?<[^<>]*>")
_CHAIN = re.compile(r"~?[@$\w]+(?:\.[@$\w]+)*[!?]?")
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$")  # the type in Go's `(s *Store[T])`
_BASE_WORDS = re.compile(r"\b(?:extends|implements|public|private|protected|virtual)\b")


class NodeNames:
    """Reads names out of one file's bytes."""

    def __init__(self, data: bytes, language: Language) -> None:
        self._data, self._language = data, language

    def defined(self, node: Node) -> tuple[str, ...]:
        """The name a node gives, in parts where it names its owner: `Store::get`, Go's receiver; empty for none."""
        if node.type in self._language.implementations:
            return tuple(filter(None, (dotted(self.field(node, "type")),)))
        name = node.child_by_field_name("name") or node.child_by_field_name("property")
        if name is None:
            name = node.child_by_field_name("declarator")
            while name is not None and (inner := _declare_in(name)) is not None:
                name = inner
        parts = tuple(filter(None, dotted(self.slice(name)).split("."))) if name is not None else ()
        receiver = _RECEIVER.search(self.field(node, "receiver"))
        return (receiver.group(1), *parts) if receiver and parts else parts

    def implemented(self, node: Node) -> tuple[str, str]:
        """The type and the trait of Rust's `impl Trait for Type`; empty where there is none."""
        return dotted(self.field(node, "type")), dotted(self.field(node, "trait"))

    def called(self, node: Node) -> str:
        """What a call calls, with its receiver, as dotted names; empty for anything computed."""
        receiver_field, name_field = self._language.calls[node.type]
        name = dotted(self.field(node, name_field))
        if receiver_field and node.child_by_field_name(receiver_field) is not None:
            receiver = dotted(self.field(node, receiver_field))
            return f"{receiver}.{name}" if receiver and name else ""
        return name

    def bases(self, node: Node) -> Iterator[str]:
        """Names of a clause such as `extends A<T> implements B, C`."""
        plain = _TYPE_ARGUMENTS.sub("", _BASE_WORDS.sub(",", self.slice(node)))
        yield from filter(None, (dotted(part.strip(" <:\n")) for part in plain.split(",")))

    def field(self, node: Node, name: str) -> str:
        """The text of a field, if it has one."""
        child = node.child_by_field_name(name)
        return self.slice(child) if child is not None else ""

    def slice(self, node: Node, limit: int = 2 * _MAX_NAME_BYTES) -> str:
        """The text of a node; empty beyond the limit, where it is no name."""
        if node.end_byte - node.start_byte > limit:
            return ""
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def body_of(node: Node) -> Node | None:
    """The body of a definition; that of `typedef struct {...} Name` stands in its type, if that has no name."""
    inner = node.child_by_field_name("type") if node.type == "type_definition" else None
    if inner is not None and inner.child_by_field_name("name") is None:
        return inner.child_by_field_name("body")
    return node.child_by_field_name("body")


def dotted(text: str) -> str:
    """`a::b`, `a->b`, `a?.b`, `a.b::<T>` as `a.b`; empty for anything computed or longer than a name can be."""
    if len(text) > _MAX_NAME_BYTES:
        return ""
    plain = _TYPE_ARGUMENTS.sub("", "".join(text.split()))
    for separator in ("?.", "->", "::"):
        plain = plain.replace(separator, ".")
    plain = plain.strip(".*&")
    return plain if _CHAIN.fullmatch(plain) else ""


def _declare_in(node: Node) -> Node | None:
    """The next inner part of a C declarator: `*f(int)` -> `f(int)` -> `f`."""
    inner = node.child_by_field_name("declarator")
    if inner is None and node.type == "reference_declarator":
        return node.named_child(0)
    return inner
