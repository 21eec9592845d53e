"""What parsers found in the files of a workspace, kept between readings: only files that changed are parsed again.

What a parser gives depends on the text, the path, the language and the module alone, so these are the key. A cache that
is absent, damaged or of another version costs time, never a result.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from hades.ingest.sources.code_facts import CodeFacts, ImportFact, SectionFact, SymbolFact

PARSER_VERSION = 1  # raise it with any change of what a parser makes of a file
PARSED_BY = f"{PARSER_VERSION} {sys.version_info.major}.{sys.version_info.minor}"
_HEAD = f"hades-parsed {PARSED_BY}\n".encode()
_KEY_CHARACTERS = 32


class ParseCache:
    """Facts by key; a line of the file is a key and the facts as JSON, which is read when it is asked for."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._held = _load(file) if file is not None else {}
        self._used: dict[str, bytes] = {}

    def find(self, key: str) -> CodeFacts | None:
        """The facts of a file that was parsed before."""
        line = self._held.get(key)
        if line is None:
            return None
        self._used[key] = line
        return _facts(line)

    def hold(self, key: str) -> None:
        """Keep the facts of a file that was not read because it is as it was."""
        if key in self._held:
            self._used[key] = self._held[key]

    def keep(self, key: str, facts: CodeFacts) -> None:
        """Remember facts; text that JSON cannot hold is parsed again next time."""
        try:
            self._used[key] = orjson.dumps(facts, default=list)
        except TypeError:
            return

    def save(self) -> None:
        """Write what this reading used, in place of what the last one did; where nothing can be written, keep none."""
        if self._file is None or self._used.keys() == self._held.keys():
            return
        partial = self._file.with_suffix(f".partial-{os.getpid()}")  # two processes may read one folder
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as out:
                out.write(_HEAD)
                out.writelines(key.encode() + line + b"\n" for key, line in sorted(self._used.items()))
            partial.replace(self._file)
        except OSError:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def parse_key(text: str, path: str, language: str, module: str) -> str:
    """The key of a file."""
    told = "\0".join((path, language, module, text)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(told, digest_size=_KEY_CHARACTERS // 2).hexdigest()


def _load(file: Path) -> dict[str, bytes]:
    try:
        with file.open("rb") as lines:
            if lines.readline() != _HEAD:
                return {}
            return {line[:_KEY_CHARACTERS].decode("ascii"): line[_KEY_CHARACTERS:-1] for line in lines}
    except (OSError, UnicodeDecodeError):
        return {}


def _facts(line: bytes) -> CodeFacts | None:
    try:
        module, symbols, imports, sections, prose, problem = orjson.loads(line)
        return CodeFacts(
            module,
            tuple([SymbolFact(*map(_freeze, one)) for one in symbols]),
            tuple([ImportFact(*map(_freeze, one)) for one in imports]),
            tuple([SectionFact(*map(_freeze, one)) for one in sections]),
            _freeze(prose),
            problem,
        )
    except (ValueError, TypeError):
        return None


def _freeze(value: Any) -> Any:
    return tuple([_freeze(one) for one in value]) if isinstance(value, list) else value
