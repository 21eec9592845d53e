"""One code file as edges are made from it: what its facts say, and what it says that other files may ask for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# A question is a word for its kind and a name. Answers are plain JSON; several files may answer one question.
Answers = dict[str, list[Any]]
MODULE = "module "  # a module -> its file
SYMBOL = "symbol "  # a qualified name -> keys of symbols
ALIAS = "alias "  # an imported name within a module -> what it stands for
BASES = "bases "  # a class -> its module and its bases, each with what the import of its first part stands for
NAMED = "named "  # a last name -> 1 where any symbol or import has it
SHORT = "short "  # the last one or two parts of a name -> qualified names
TESTED = "tested "  # the last part of a module, in lower case -> files that a test may be named after
IN_TEST = "in test "  # a symbol -> 1 where it belongs to a test
DEFINES = "defines "  # a document -> its file and, by last name, its symbols
_TEST_PATH = re.compile(r"(?:^|/)(?:tests?|testing|spec|__tests__)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$")


@dataclass(frozen=True)
class CodeDocument:
    """A code file: its document key, file key, what its facts say, and its functions in order of appearance."""

    document: str
    file: str
    code: dict[str, Any]
    funcs: Sequence[tuple[str, str]]  # key, qualified name
    spans: Mapping[str, Sequence[int]]  # of each function, by key

    @property
    def module(self) -> str:
        """The name it is imported by."""
        return str(self.code.get("module", ""))

    @cached_property
    def is_test(self) -> bool:
        """Whether its path is that of a test."""
        return _TEST_PATH.search(str(self.code.get("path", ""))) is not None

    @cached_property
    def scope(self) -> dict[str, str]:
        """What imported names stand for: `from a.b import c as d` makes d mean a.b.c."""
        scope: dict[str, str] = {}
        for module, name, alias, *_ in self.code.get("imports", ()):
            if name is None:
                scope[alias or module.partition(".")[0]] = module if alias else module.partition(".")[0]
            elif name != "*":
                scope[alias or name] = f"{module}.{name}"
        return scope

    def symbols(self) -> Iterable[tuple[str, dict[str, Any]]]:
        """Key and facts of each symbol."""
        for (key, _), symbol in zip(self.funcs, self.code.get("symbols", ()), strict=False):
            yield key, symbol

    def answers(self) -> Answers:
        """What it answers to the questions of other files."""
        told: Answers = defaultdict(list)
        defined: dict[str, list[str]] = defaultdict(list)
        told[MODULE + self.module].append(self.file)
        for key, symbol in self.symbols():
            qualified = symbol["qualified_name"]
            told[SYMBOL + qualified].append(key)
            defined[qualified.rpartition(".")[2]].append(key)
            if symbol.get("bases"):
                bases = [[base, self.scope.get(base.partition(".")[0])] for base in symbol["bases"]]
                told[BASES + qualified].append([self.module, bases])
            for short in _short_names(qualified):
                told[SHORT + short].append(qualified)
            if self.is_test:
                told[IN_TEST + key] = [1]
        for alias, target in self.scope.items() if self.module else ():
            told[f"{ALIAS}{self.module}.{alias}"].append(target)
        for last in (*defined, *(self.scope if self.module else ())):
            told[NAMED + last.rpartition(".")[2]] = [1]
        if self.module and not self.is_test:
            told[TESTED + self.module.rpartition(".")[2].lower()].append(self.file)
        told[DEFINES + self.document].append([self.file, dict(defined)])
        return dict(told)


def _short_names(qualified: str) -> Iterable[str]:
    """The last one and the last two parts of a qualified name that has more."""
    parts = qualified.split(".")
    return (".".join(parts[-length:]) for length in (1, 2) if len(parts) > length)
