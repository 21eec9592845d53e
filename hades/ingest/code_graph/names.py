"""Which symbol a name in code means: through imports, aliases, re-exports, `self`, `cls`, `super()`
and base classes.

A name that could be several things, or is none of ours, means nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from hades.ingest.code_graph.corpus import CodeDocument

_RECEIVERS = frozenset({"self", "cls", "this"})
# Of re-exports and base classes followed; both may form a cycle.
_MAX_HOPS = 6


class CodeNames:
    """Names of all code files together; of two that say the same the first given counts."""

    def __init__(self, documents: Iterable[CodeDocument]) -> None:
        self._files: dict[str, list[str]] = defaultdict(list)  # of a module
        self._symbols: dict[str, list[str]] = defaultdict(list)  # keys by qualified name
        self._qualified: dict[str, str] = {}  # names by key
        # Qualified names by their last one or two parts.
        self._short: dict[str, set[str]] = defaultdict(set)
        self._last_names: set[str] = set()  # of anything that is defined or imported here
        self._aliases: dict[str, str] = {}  # an imported name within a module -> what it stands for
        # With what imports stand for.
        self._stated_bases: dict[str, tuple[str, list[tuple[str, str | None]]]] = {}
        # Files by the last part of their module.
        self._tested: dict[str, list[str]] = defaultdict(list)
        self.in_tests: set[str] = set()  # keys of symbols
        # the file of a document and its symbols by last name
        self.definitions: dict[str, tuple[str, dict[str, list[str]]]] = {}
        # The same names are resolved again and again. The result follows only from the name and the
        # hops left, so the order of calls does not matter.
        self._keys = cache(self._search)
        self._bases = cache(self._find_bases)
        self._above = cache(self._walk_up)

        for document in documents:
            self._add(document)

    def _add(self, document: CodeDocument) -> None:
        module = document.module
        defined = defaultdict[str, list[str]](list)
        self._files[module].append(document.file)

        for key, symbol in document.symbols():
            qualified = symbol["qualified_name"]
            self._symbols[qualified].append(key)
            self._qualified[key] = qualified
            defined[qualified.rpartition(".")[2]].append(key)

            if symbol.get("bases"):
                bases = []
                for base in symbol["bases"]:
                    bases.append((base, document.scope.get(base.partition(".")[0])))

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
        """The file an import reaches: the submodule it names, else the module; None when it is not
        one file.
        """
        if name:
            submodule = self._files.get(f"{module}.{name}")
        else:
            submodule = None

        return _only(submodule or self._files.get(module))

    def tested_file(self, last_name: str) -> str | None:
        """The one file whose module has this last name, in lower case, and is no test."""
        return _only(self._tested.get(last_name))

    def resolve(
        self,
        name: str,
        around: str,
        document: CodeDocument,
    ) -> str | None:
        """The key of the symbol that a name means inside the symbol `around`."""
        imported = document.scope.get(name.partition(".")[0])
        return self._resolve(
            name,
            around,
            document.module,
            imported,
            _MAX_HOPS,
        )

    def find(self, qualified: str) -> str | None:
        """The key of the one symbol of a qualified name, re-exports followed."""
        return _only(self._keys(qualified, _MAX_HOPS))

    def find_short(self, name: str) -> str | None:
        """The key of the symbol whose qualified name ends so; None where several names do."""
        qualified_names = [*self._short.get(name, ())]
        if len(qualified_names) == 1:
            return min(self._symbols[qualified_names[0]])

        return None

    def ancestors(self, class_name: str) -> tuple[str, ...]:
        """Qualified names of the known base classes of a class, nearest first."""
        return self._above(class_name, _MAX_HOPS)

    def _resolve(
        self,
        name: str,
        around: str,
        module: str,
        imported: str | None,
        hops: int,
    ) -> str | None:
        """`imported`: what the first part of the name stands for where the file imports it."""
        head, _, tail = name.partition(".")
        if (tail or imported is None) and name.rpartition(".")[2] not in self._last_names:
            return None  # most calls are of other libraries: nothing here is called so

        owner = around.rpartition(".")[0]
        if head in _RECEIVERS:
            if tail:
                return self._member([owner, *self._above(owner, hops)], tail)
            return None

        if head == "super()":
            if tail:
                return self._member(self._above(owner, hops), tail)
            return None

        if imported is not None:
            candidates = [f"{imported}.{tail}" if tail else imported]
        else:
            candidates = []

        while around:
            candidates.append(f"{around}.{name}")
            around = around.rpartition(".")[0]

        candidates.append(f"{module}.{name}" if module else name)
        for candidate in candidates:
            if keys := self._keys(candidate, hops):
                return _only(keys)

        return None

    def _walk_up(self, class_name: str, hops: int) -> tuple[str, ...]:
        ancestors: dict[str, None] = {}
        waiting = [*reversed(self._bases(class_name, hops))]
        while waiting:
            name = waiting.pop()
            if name not in ancestors and name != class_name:
                ancestors[name] = None
                waiting += reversed(self._bases(name, hops))

        return tuple(ancestors)

    def _find_bases(self, class_name: str, hops: int) -> tuple[str, ...]:
        """Qualified names of the known classes that a class names as its bases."""
        module, bases = self._stated_bases.get(class_name, ("", []))

        names: dict[str, None] = {}
        for base, imported in bases:
            key = self._resolve(
                base,
                class_name,
                module,
                imported,
                hops - 1,
            )
            if key is not None and self._qualified[key] != class_name:
                names[self._qualified[key]] = None

        return tuple(names)

    def _search(self, qualified: str, hops: int) -> list[str]:
        """The symbols of a qualified name, bases and re-exports followed."""
        keys = self._symbols.get(qualified)
        if keys or hops <= 0:
            return keys or []

        owner, _, member = qualified.rpartition(".")
        if owner in self._stated_bases:
            inherited = self._member(self._above(owner, hops - 1), member)
            return [inherited] if inherited else []

        following = self._follow(qualified)
        if following not in (None, qualified):
            return self._keys(following, hops - 1)

        return []

    def _follow(self, qualified: str) -> str | None:
        """The same name with its longest re-exported beginning replaced by what it stands for."""
        prefix = qualified
        suffix = ""

        while prefix:
            if prefix in self._aliases:
                return f"{self._aliases[prefix]}{suffix}"

            prefix, dot, last = prefix.rpartition(".")
            suffix = f"{dot}{last}{suffix}"

        return None

    def _member(self, classes: Iterable[str], name: str) -> str | None:
        for class_name in classes:
            if keys := self._symbols.get(f"{class_name}.{name}"):
                return _only(keys)

        return None


def _only(meanings: Sequence[str] | None) -> str | None:
    """What a name means if that is one thing."""
    if meanings and len(meanings) == 1:
        return meanings[0]
    return None
