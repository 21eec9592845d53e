"""Which symbol a name in code means: through imports, aliases, re-exports, `self`, `cls`, `super()` and base classes.

A name that could be several things, or is none of ours, means nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from hades.ingest.code_graph.corpus import CodeDocument

_RECEIVERS = frozenset({"self", "cls", "this"})
_MAX_HOPS = 6  # of re-exports; imports may go round in a circle
_MAX_OPEN = 3  # classes whose bases are looked for, one for the sake of the other; many in a circle would take for ever
_Found = TypeVar("_Found")


class CodeNames:
    """Names of all code files together; of two that say the same the first given counts."""

    def __init__(self, documents: Iterable[CodeDocument]) -> None:
        self._files: dict[str, list[str]] = defaultdict(list)  # of a module
        self._symbols: dict[str, list[str]] = defaultdict(list)  # keys by qualified name
        self._qualified: dict[str, str] = {}  # names by key
        self._short: dict[str, set[str]] = defaultdict(set)  # qualified names by their last one or two parts
        self._last_names: set[str] = set()  # of anything that is defined or imported here
        self._aliases: dict[str, str] = {}  # an imported name within a module -> what it stands for
        self._stated_bases: dict[str, tuple[str, list[tuple[str, str | None]]]] = {}  # with what imports stand for
        self._tested: dict[str, list[str]] = defaultdict(list)  # files by the last part of their module
        self.in_tests: set[str] = set()  # keys of symbols
        # the file of a document and its symbols by last name
        self.definitions: dict[str, tuple[str, dict[str, list[str]]]] = {}
        self._ancestors: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._bases: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._found: dict[str, tuple[list[str], bool]] = {}
        self._open_classes: set[str] = set()
        self._met_circle = False
        for document in documents:
            self._add(document)

    def _add(self, document: CodeDocument) -> None:
        module, defined = document.module, defaultdict[str, list[str]](list)
        self._files[module].append(document.file)
        for key, symbol in document.symbols():
            qualified = symbol["qualified_name"]
            self._symbols[qualified].append(key)
            self._qualified[key] = qualified
            defined[qualified.rpartition(".")[2]].append(key)
            if symbol.get("bases"):
                bases = [(base, document.scope.get(base.partition(".")[0])) for base in symbol["bases"]]
                self._stated_bases.setdefault(qualified, (module, bases))
            parts = qualified.split(".")
            for length in (1, 2):
                if len(parts) > length:
                    self._short[".".join(parts[-length:])].add(qualified)
            if document.is_test:
                self.in_tests.add(key)
        self._last_names.update(defined)
        if module:
            for alias, target in document.scope.items():
                self._aliases.setdefault(f"{module}.{alias}", target)
                self._last_names.add(alias.rpartition(".")[2])
            if not document.is_test:
                self._tested[module.rpartition(".")[2].lower()].append(document.file)
        self.definitions[document.document] = document.file, dict(defined)

    def file_of(self, module: str, name: str | None = None) -> str | None:
        """The file an import reaches: the submodule it names, else the module; None when it is not one file."""
        for candidate in ([f"{module}.{name}"] if name else []) + [module]:
            files = self._files.get(candidate)
            if files:
                return files[0] if len(files) == 1 else None
        return None

    def tested_file(self, last_name: str) -> str | None:
        """The one file whose module has this last name, in lower case, and is no test."""
        files = self._tested.get(last_name, [])
        return files[0] if len(files) == 1 else None

    def resolve(self, name: str, around: str, document: CodeDocument) -> str | None:
        """The key of the symbol that a name means inside the symbol `around`."""
        return self._resolve(name, around, document.module, document.scope.get(name.partition(".")[0]))

    def find(self, qualified: str) -> str | None:
        """The key of the one symbol of a qualified name, re-exports followed."""
        keys = self._keys(qualified)
        return keys[0] if len(keys) == 1 else None

    def find_short(self, name: str) -> str | None:
        """The key of the symbol whose qualified name ends so; None where several names do."""
        meant = self._short.get(name, ())
        return min(self._symbols[next(iter(meant))]) if len(meant) == 1 else None

    def ancestors(self, class_name: str) -> tuple[str, ...]:
        """Qualified names of the known base classes of a class, nearest first."""
        return self._once(self._ancestors, class_name, self._walk_up)

    def _once(self, held: dict[str, tuple[_Found, bool]], name: str, find: Callable[[str], _Found]) -> _Found:
        """What is found for a name, looked for once.

        In a circle of classes the answer follows from where the circle is entered. It is kept for those who enter it at
        this name, so that no order of questions shows.
        """
        known = held.get(name)
        if known is None or (known[1] and self._open_classes):
            was_circle, self._met_circle = self._met_circle, False
            known = find(name), self._met_circle
            self._met_circle = was_circle
            if not (known[1] and self._open_classes):
                held[name] = known
        self._met_circle |= known[1]
        return known[0]

    def _resolve(self, name: str, around: str, module: str, imported: str | None) -> str | None:
        """`imported`: what the first part of the name stands for where the file imports it."""
        head, _, rest = name.partition(".")
        if (rest or imported is None) and name.rpartition(".")[2] not in self._last_names:
            return None  # most calls are of other libraries: nothing here is called so
        owner = around.rpartition(".")[0]
        if head in _RECEIVERS:
            return self._member([owner, *self.ancestors(owner)], rest) if rest else None
        if head == "super()":
            return self._member(self.ancestors(owner), rest) if rest else None
        enclosing = around.split(".")
        candidates = [".".join([*enclosing[:depth], name]) for depth in range(len(enclosing), 0, -1)]
        candidates.append(f"{module}.{name}" if module else name)
        if imported is not None:
            candidates.insert(0, f"{imported}.{rest}" if rest else imported)
        for candidate in candidates:
            keys = self._keys(candidate)
            if keys:
                return keys[0] if len(keys) == 1 else None
        return None

    def _walk_up(self, class_name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        waiting = [*reversed(self._direct_bases(class_name))]
        while waiting:
            name = waiting.pop()
            if name not in found and name != class_name:
                found[name] = None
                waiting += reversed(self._direct_bases(name))
        return tuple(found)

    def _direct_bases(self, class_name: str) -> tuple[str, ...]:
        return self._once(self._bases, class_name, self._find_bases)

    def _find_bases(self, class_name: str) -> tuple[str, ...]:
        if class_name in self._open_classes or len(self._open_classes) == _MAX_OPEN:
            self._met_circle = True
            return ()
        if class_name not in self._stated_bases:
            return ()
        module, bases = self._stated_bases[class_name]
        self._open_classes.add(class_name)
        found: dict[str, None] = {}
        for base, imported in bases:
            name = self._qualified.get(self._resolve(base, class_name, module, imported) or "")
            if name and name != class_name:
                found[name] = None
        self._open_classes.discard(class_name)
        return tuple(found)

    def _keys(self, qualified: str) -> list[str]:
        """The symbols of a qualified name, bases and re-exports followed; the same names are asked again and again."""
        return self._once(self._found, qualified, self._search)

    def _search(self, qualified: str) -> list[str]:
        for _ in range(_MAX_HOPS):
            keys = self._symbols.get(qualified)
            if keys:
                return keys
            owner, _, member = qualified.rpartition(".")
            if owner in self._stated_bases:
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
