"""Which symbol a name in code means: through imports, aliases, re-exports, `self`, `cls`, `super()` and base classes.

A name that could be several things, or is none of ours, means nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_RECEIVERS = frozenset({"self", "cls", "this"})
_MAX_HOPS = 6  # of re-exports; imports may go round in a circle


@dataclass(frozen=True)
class CodeDocument:
    """A code file: its document key, file key, what its facts say, and its functions in order of appearance."""

    document: str
    file: str
    code: dict[str, Any]
    funcs: Sequence[tuple[str, str]]  # key, qualified name

    @property
    def module(self) -> str:
        """The name it is imported by."""
        return str(self.code.get("module", ""))

    def symbols(self) -> Iterable[tuple[str, dict[str, Any]]]:
        """Key and facts of each symbol."""
        for (key, _), symbol in zip(self.funcs, self.code.get("symbols", ()), strict=False):
            yield key, symbol


class CodeNames:
    """Names of all code files together."""

    def __init__(self, documents: Sequence[CodeDocument]) -> None:
        self._modules: dict[str, list[str]] = defaultdict(list)
        self._symbols: dict[str, list[str]] = defaultdict(list)
        self._aliases: dict[str, str] = {}
        self._bases: dict[str, tuple[CodeDocument, tuple[str, ...]]] = {}
        self._ancestors: dict[str, tuple[str, ...]] = {}
        self._found: dict[str, list[str]] = {}
        self._open_classes = 0
        self._scopes = {document.file: _map_imports(document) for document in documents}
        self.qualified: dict[str, str] = {}
        for document in documents:
            self._add(document)
        named = (*self._symbols, *self._aliases)
        self._last_names = {name.rpartition(".")[2] for name in named}

    def file_of(self, module: str, name: str | None = None) -> str | None:
        """The file an import reaches: the submodule it names, else the module; None when it is not one file."""
        for candidate in ([f"{module}.{name}"] if name else []) + [module]:
            files = self._modules.get(candidate)
            if files:
                return files[0] if len(files) == 1 else None
        return None

    def resolve(self, name: str, around: str, document: CodeDocument) -> str | None:
        """The key of the symbol that a name means inside the symbol `around`."""
        head, _, rest = name.partition(".")
        imported = self._scopes[document.file].get(head)
        if (rest or imported is None) and name.rpartition(".")[2] not in self._last_names:
            return None  # most calls are of other libraries: nothing here is called so
        owner = around.rpartition(".")[0]
        if head in _RECEIVERS:
            return self._member([owner, *self.ancestors(owner)], rest) if rest else None
        if head == "super()":
            return self._member(self.ancestors(owner), rest) if rest else None
        enclosing = around.split(".")
        candidates = [".".join([*enclosing[:depth], name]) for depth in range(len(enclosing), 0, -1)]
        candidates.append(f"{document.module}.{name}" if document.module else name)
        if imported is not None:
            candidates.insert(0, f"{imported}.{rest}" if rest else imported)
        for candidate in candidates:
            keys = self._keys(candidate)
            if keys:
                return keys[0] if len(keys) == 1 else None
        return None

    def is_imported(self, name: str, document: CodeDocument) -> bool:
        """Whether a name begins with something the file imports."""
        return name.partition(".")[0] in self._scopes[document.file]

    def find(self, qualified: str) -> str | None:
        """The key of the one symbol of a qualified name, re-exports followed."""
        keys = self._keys(qualified)
        return keys[0] if len(keys) == 1 else None

    def ancestors(self, class_name: str) -> tuple[str, ...]:
        """Qualified names of the known base classes of a class, nearest first."""
        if class_name not in self._ancestors:
            self._ancestors[class_name] = ()  # ends a circle of bases
            self._open_classes += 1
            found: dict[str, None] = {}
            document, bases = self._bases.get(class_name, (None, ()))
            for base in bases if document is not None else ():
                assert document is not None
                key = self.resolve(base, class_name, document)
                name = self.qualified.get(key or "")
                if name and name != class_name:
                    found[name] = None
                    found.update(dict.fromkeys(self.ancestors(name)))
            self._ancestors[class_name] = tuple(found)
            self._open_classes -= 1
        return self._ancestors[class_name]

    def _add(self, document: CodeDocument) -> None:
        self._modules[document.module].append(document.file)
        for key, symbol in document.symbols():
            qualified = symbol["qualified_name"]
            self._symbols[qualified].append(key)
            self.qualified[key] = qualified
            if symbol.get("bases"):
                self._bases.setdefault(qualified, (document, tuple(symbol["bases"])))
        if document.module:
            for alias, target in self._scopes[document.file].items():
                self._aliases.setdefault(f"{document.module}.{alias}", target)

    def _keys(self, qualified: str) -> list[str]:
        """The symbols of a qualified name, bases and re-exports followed; the same names are asked again and again."""
        found = self._found.get(qualified)
        if found is None:
            found = self._search(qualified)
            if not self._open_classes:  # inside a circle of bases the answer is not final
                self._found[qualified] = found
        return found

    def _search(self, qualified: str) -> list[str]:
        for _ in range(_MAX_HOPS):
            keys = self._symbols.get(qualified)
            if keys:
                return keys
            owner, _, member = qualified.rpartition(".")
            if owner in self._bases:
                inherited = self._member(self.ancestors(owner), member)
                return [inherited] if inherited else []
            following = self._follow(qualified)
            if following is None or following == qualified:
                return []
            qualified = following
        return []

    def _follow(self, qualified: str) -> str | None:
        """The same name with its longest re-exported beginning replaced by what it stands for."""
        prefix, rest = qualified, ""
        while prefix:
            if prefix in self._aliases:
                return f"{self._aliases[prefix]}{rest}"
            prefix, dot, last = prefix.rpartition(".")
            rest = f"{dot}{last}{rest}"
        return None

    def _member(self, classes: Iterable[str], name: str) -> str | None:
        for one in classes:
            keys = self._symbols.get(f"{one}.{name}")
            if keys:
                return keys[0] if len(keys) == 1 else None
        return None


def _map_imports(document: CodeDocument) -> dict[str, str]:
    """What imported names stand for: `from a.b import c as d` makes d mean a.b.c."""
    scope: dict[str, str] = {}
    for module, name, alias, *_ in document.code.get("imports", ()):
        if name is None:
            scope[alias or module.partition(".")[0]] = module if alias else module.partition(".")[0]
        elif name != "*":
            scope[alias or name] = f"{module}.{name}"
    return scope
