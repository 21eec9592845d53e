"""Which symbol a name in code means: through imports, aliases, re-exports, `self`, `cls`, `super()` and base classes.

A name that could be several things, or is none of ours, means nothing. Every question that an answer follows from is
noted: what was found for a file stays true as long as the answers to its questions do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hades.ingest.code_graph.corpus import (
    ALIAS,
    BASES,
    DEFINES,
    IN_TEST,
    MODULE,
    NAMED,
    SHORT,
    SYMBOL,
    TESTED,
    Answers,
    CodeDocument,
)

_RECEIVERS = frozenset({"self", "cls", "this"})
_MAX_HOPS = 6  # of re-exports; imports may go round in a circle
_MAX_OPEN = 3  # classes whose bases are looked for, one for the sake of the other; many in a circle would take for ever
_Found = TypeVar("_Found")
_Notes = set[Any]  # questions, and findings that bring their own


@dataclass(frozen=True, eq=False)
class _Known(Generic[_Found]):
    """What was found for a name, what it follows from, and whether classes went round in a circle."""

    found: _Found
    asked: _Notes
    is_circle: bool


class CodeNames:
    """Names of all code files together; files answer in the order given."""

    def __init__(self, answers: Iterable[Answers]) -> None:
        self._told: Answers = {}
        self._asked: _Notes = set()
        self._ancestors: dict[str, _Known[tuple[str, ...]]] = {}
        self._bases: dict[str, _Known[tuple[str, ...]]] = {}
        self._found: dict[str, _Known[list[str]]] = {}
        self._open_classes: set[str] = set()
        self._met_circle = False
        self._qualified: dict[str, str] = {}
        for told in answers:
            for question, given in told.items():
                self._told.setdefault(question, []).extend(given)
        for question, keys in self._told.items():
            if question.startswith(SYMBOL):
                self._qualified.update(dict.fromkeys(keys, question[len(SYMBOL) :]))

    def forget_questions(self) -> None:
        """Note from now on what is asked."""
        self._asked = set()

    def noted_questions(self) -> set[str]:
        """Every question that answers since then follow from."""
        questions: set[str] = set()
        seen: set[_Known[Any]] = set()
        waiting = [self._asked]
        while waiting:
            for one in waiting.pop():
                if isinstance(one, str):
                    questions.add(one)
                elif one not in seen:
                    seen.add(one)
                    waiting.append(one.asked)
        return questions

    def count_answers(self, question: str) -> int:
        """How many answers a question has."""
        return len(self._told.get(question, ()))

    def file_of(self, module: str, name: str | None = None) -> str | None:
        """The file an import reaches: the submodule it names, else the module; None when it is not one file."""
        for candidate in ([f"{module}.{name}"] if name else []) + [module]:
            files = self._ask(MODULE, candidate)
            if files:
                return str(files[0]) if len(files) == 1 else None
        return None

    def tested_file(self, last_name: str) -> str | None:
        """The one file whose module has this last name, in lower case, and is no test."""
        files = self._ask(TESTED, last_name)
        return files[0] if len(files) == 1 else None

    def is_in_test(self, key: str) -> bool:
        """Whether a symbol belongs to a test."""
        return bool(self._ask(IN_TEST, key))

    def definitions(self, document: str) -> tuple[str, dict[str, list[str]]] | None:
        """The file of a document and its symbols by last name; None where it is no code file that is here."""
        told = self._ask(DEFINES, document)
        return (told[0][0], told[0][1]) if told else None

    def resolve(self, name: str, around: str, document: CodeDocument) -> str | None:
        """The key of the symbol that a name means inside the symbol `around`."""
        return self._resolve(name, around, document.module, document.scope.get(name.partition(".")[0]))

    def find(self, qualified: str) -> str | None:
        """The key of the one symbol of a qualified name, re-exports followed."""
        keys = self._keys(qualified)
        return keys[0] if len(keys) == 1 else None

    def find_short(self, name: str) -> str | None:
        """The key of the symbol whose qualified name ends so; None where several names do."""
        meant = set(self._ask(SHORT, name))
        return min(self._ask(SYMBOL, meant.pop())) if len(meant) == 1 else None

    def ancestors(self, class_name: str) -> tuple[str, ...]:
        """Qualified names of the known base classes of a class, nearest first."""
        return self._once(self._ancestors, class_name, self._walk_up)

    def _ask(self, kind: str, name: str) -> Sequence[Any]:
        """All answers to a question."""
        question = kind + name
        self._asked.add(question)
        return self._told.get(question, ())

    def _once(self, held: dict[str, _Known[_Found]], name: str, find: Callable[[str], _Found]) -> _Found:
        """What is found for a name, looked for once; its questions count for everyone who asks.

        In a circle of classes the answer follows from where the circle is entered. It is kept for those who enter it at
        this name, so that no order of questions shows.
        """
        known = held.get(name)
        if known is None or (known.is_circle and self._open_classes):
            around, self._asked = self._asked, set()
            was_circle, self._met_circle = self._met_circle, False
            known = _Known(find(name), self._asked, self._met_circle)
            self._asked, self._met_circle = around, was_circle
            if not (known.is_circle and self._open_classes):
                held[name] = known
        self._asked.add(known)
        self._met_circle |= known.is_circle
        return known.found

    def _resolve(self, name: str, around: str, module: str, imported: str | None) -> str | None:
        """`imported`: what the first part of the name stands for where the file imports it."""
        head, _, rest = name.partition(".")
        if (rest or imported is None) and not self._ask(NAMED, name.rpartition(".")[2]):
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
        told = self._ask(BASES, class_name)
        if not told:
            return ()
        module, bases = told[0]
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
            keys = self._ask(SYMBOL, qualified)
            if keys:
                return list(keys)
            owner, _, member = qualified.rpartition(".")
            if self._ask(BASES, owner):
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
            target = self._ask(ALIAS, prefix)
            if target:
                return f"{target[0]}{rest}"
            prefix, dot, last = prefix.rpartition(".")
            rest = f"{dot}{last}{rest}"
        return None

    def _member(self, classes: Iterable[str], name: str) -> str | None:
        for one in classes:
            keys = self._ask(SYMBOL, f"{one}.{name}")
            if keys:
                return keys[0] if len(keys) == 1 else None
        return None
