"""Notes that link to each other (Obsidian, Logseq, plain Markdown): links, tags and properties as facts."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import yaml

from hades.ingest.source_document import GivenName, Link
from hades.ingest.sources.formats.extracted import as_utc, one_line
from schemas.graph_types import RelationType
from schemas.nodes import NameType

_FRONT = re.compile(r"---[ \t]*\r?\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_WIKI_LINK = re.compile(r"(#?)!?\[\[([^\[\]\n|#^]{1,200})(?:[#^][^\[\]\n|]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]")
_PAGE_LINK = re.compile(r"(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^()<>\s#]{1,300})(?:#[^()\s]{0,200})?>?\)")
_TAG = re.compile(r"(?<![\w/#&])#([^\W\d_][\w/-]{0,60})")
_PROPERTY = re.compile(r"^[ \t]*(?:- )?([A-Za-z][\w-]{0,40})::[ \t]*(.{1,500})$", re.MULTILINE)  # Logseq
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 300  # open brackets; the YAML reader refuses little more, and takes seconds to say so
_MAX_FACTS = 2_000  # of one note
_DATE_KEYS = ("date", "created", "created_at", "published")
_HEX_COLOUR = re.compile(r"[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?$")


@dataclass(frozen=True)
class NoteFacts:
    """What a note states beside its text."""

    links: tuple[Link, ...] = ()
    names: tuple[GivenName, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    created: datetime | None = None


@dataclass
class NoteIndex:
    """Which file a link means: by path, by file name anywhere in the folder, by alias."""

    _by_path: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, str] = field(default_factory=dict)
    _by_alias: dict[str, str] = field(default_factory=dict)

    def add(self, origin: str, aliases: Iterable[str] = ()) -> None:
        """Know one file; of two with one name the one nearer to the root is meant, as in Obsidian."""
        path = PurePosixPath(origin.casefold())
        plain = str(path.with_suffix("")) if path.suffix in (".md", ".markdown") else str(path)
        self._by_path[str(path)] = self._by_path[plain] = origin
        for name in {path.name, path.stem, path.stem.replace("___", "/"), unquote(path.stem)}:
            held = self._by_name.get(name)
            if held is None or held.count("/") > origin.count("/"):
                self._by_name[name] = origin
        for alias in aliases:
            self._by_alias.setdefault(alias.casefold(), origin)

    def find(self, target: str, origin: str) -> str | None:
        """The origin of the file that `target` in the note `origin` means."""
        wanted = unquote(target).strip().casefold()
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(origin.casefold()), wanted))
        found = self._by_path.get(beside) or self._by_path.get(wanted.removeprefix("/"))
        return found or self._by_name.get(wanted) or self._by_alias.get(wanted)


def read_note(text: str, title: str, origin: str, index: NoteIndex) -> NoteFacts:
    """Links to other files as links; tags, properties and links to pages that do not exist as named facts."""
    front = front_matter(text)
    body = _FENCE.sub("", _FRONT.sub("", text, count=1) if front else text)
    linked: Counter[str] = Counter()
    triples: list[tuple[str, str, str]] = []
    for relation, target in _targets(body, front):
        other = index.find(target, origin)
        if other is None and relation == "links to file":
            continue
        if other is not None and relation in ("links to", "links to file"):
            linked[other] += 1
        else:
            triples.append((title, relation, one_line(target, 100)))
    tags = list(dict.fromkeys(_tags(body, front)))
    triples += [(title, "tagged", tag) for tag in tags]
    triples += [(title, "also called", alias) for alias in aliases_of(front)]
    kept = tuple(dict.fromkeys((s, r, o) for s, r, o in triples if s.strip() and o.strip() and s != o))[:_MAX_FACTS]
    links = [
        Link(RelationType.REFERS_TO, other, count=count, context="links to") for other, count in sorted(linked.items())
    ]
    created = next((when for key in _DATE_KEYS if (when := as_utc(front.get(key))) is not None), None)
    names = tuple(GivenName(tag, NameType.CONCEPT) for tag in tags)
    return NoteFacts(tuple(links[:_MAX_FACTS]), names, kept, created)


def front_matter(text: str) -> dict[str, Any]:
    """The YAML block at the start of a note; empty when there is none or it is damaged."""
    found = _FRONT.match(text)
    if not found or _opens_too_many(found.group(1)):
        return {}
    try:
        loaded = yaml.safe_load(found.group(1))
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return {str(key): value for key, value in loaded.items()} if isinstance(loaded, dict) else {}


def _opens_too_many(text: str) -> bool:
    opened = 0
    for bracket in _BRACKET.findall(text):
        opened = opened + 1 if bracket in "[{" else max(opened - 1, 0)
        if opened > _DEEPEST:
            return True
    return False


def aliases_of(front: dict[str, Any]) -> list[str]:
    """Other names of a note."""
    return [name for key in ("aliases", "alias") for name in _texts(front.get(key))]


def _targets(body: str, front: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every link as (relation, target)."""
    for found in _WIKI_LINK.finditer(body):
        if not found.group(1):
            yield "links to", found.group(2).strip()
    for found in _PAGE_LINK.finditer(body):
        if "://" not in found.group(1) and not found.group(1).startswith("mailto:"):
            yield "links to file", found.group(1)
    for key, value in front.items():
        for text in _texts(value):
            for found in _WIKI_LINK.finditer(text):
                yield one_line(key.replace("_", " "), 60), found.group(2).strip()
    for found in _PROPERTY.finditer(body):
        if found.group(1).lower() not in ("tags", "alias", "aliases", "id", "collapsed"):
            for page in _WIKI_LINK.finditer(found.group(2)):
                yield found.group(1).replace("-", " ").lower(), page.group(2).strip()


def _tags(body: str, front: dict[str, Any]) -> Iterator[str]:
    for key in ("tags", "tag", "keywords"):
        for text in _texts(front.get(key)):
            yield text.lstrip("#")
    for found in _TAG.finditer(body):
        if not _HEX_COLOUR.match(found.group(1)):
            yield found.group(1).rstrip("/")
    for found in _WIKI_LINK.finditer(body):
        if found.group(1):
            yield found.group(2).strip()
    for found in _PROPERTY.finditer(body):
        if found.group(1).lower() == "tags":
            yield from (part.strip().strip("[]#").strip() for part in found.group(2).split(",") if part.strip("[]# "))


def _texts(value: object) -> list[str]:
    """A property's values as texts; a list may be written with commas."""
    values = value if isinstance(value, list) else str(value).split(",") if isinstance(value, str) else []
    return [one_line(one, 100) for one in values if isinstance(one, str) and one.strip()]
