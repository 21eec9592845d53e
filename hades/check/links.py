"""Links of pages that lead nowhere: relative links, anchors, and references of reStructuredText and
MyST.

A change is blamed only for what it broke. A kind of link that the base does not resolve either,
such as the addresses of a site generator, is not checked.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from hades.check.pages import State
from hades.check.report import Finding, Level
from hades.ingest.formats.directives import namespace_of, rst_anchors, rst_roles
from hades.ingest.formats.markup import FRONT_MATTER, markdown_headings, plain_title
from hades.ingest.sources.documents import prose_language

_FENCE = re.compile(
    r"^[ \t>]*(`{3,}|~{3,})[^`\n]*\n(?:.*\n)*?(?:[ \t>]*\1[`~]*[ \t]*$|\Z)",
    re.M,
)
_CODE = re.compile(
    r"(?<!`)(`+)(?!`)(?:[^`\n]|(?!\1(?!`))`|\n(?!\s*\n))*?(?<!`)\1(?!`)|<!--.*?-->",
    re.S,
)
_LINK = re.compile(
    r"\]\(\s*(?:<([^<>\n]*)>|((?:[^()\s<>]|\([^()\s]*\))+))(?:\s+[\"'(][^\n]*?)?\s*\)"
)
_DEFINED = re.compile(
    r"^ {0,3}\[(?!\^)([^\]\n]{1,200})\]:[ \t]*<?([^\s<>]+)>?[ \t]*(?:[\"'(].*)?$",
    re.M,
)
_HTML = re.compile(
    r"<(?:a|img|source)\b[^<>]*?\b(?:href|src)=[\"']([^\"'\n]+)[\"']",
    re.I,
)
_HTML_ID = re.compile(r"<[a-z][\w-]*\b[^<>]*?\b(?:id|name)=[\"']([^\"'\n]+)[\"']", re.I)
_STATED_ID = re.compile(r"\{:?[^{}\n]*?#([^\s{}]+)[^{}\n]*\}")
_MYST_LABEL = re.compile(r"^[ \t]*\(([^()\n]{1,200})\)=[ \t]*$", re.M)
_MYST_ROLE = re.compile(r"\{([\w:+-]+)\}`(?:[^`<>\n]*<([^<>`\n]+)>|([^`<>\n]+))`")
_DIRECTIVE = re.compile(
    r"^(?:\.\. |(?:`{3,}|:{3,})\{)(toctree|include|literalinclude|image|figure)(?:::|\})"
    r"[ \t]*(\S*)[ \t]*$",
    re.M,
)
_EVALUATED = re.compile(  # parts of a page in reStructuredText, and directives that describe names
    r"^[`:]{3,}\{(?:eval-rst\}\n(.*?)^[`:]{3,}[ \t]*$|([\w:-]+)\}[ \t]+(\S[^\n]*)$)",
    re.M | re.S,
)
_ITEM_HEADING = re.compile(
    r"^[ \t>]*(?:[-*+]|\d+[.)])?[ \t]*#{1,6}[ \t]+(\S.*?)[ \t]*#*$",
    re.M,
)
_ENTRY = re.compile(r"(?:[^<>\n]*<([^<>\n]+)>|(\S+))[ \t]*$")
_INCLUDED = re.compile(
    r"^\s*(?:-{1,2}8<-{1,2}|\{%|\{\{|:::|\.\. include::|`{3}\{include\})",
    re.M,
)
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|[@{<$~|]|.*[{}*]")
_TAB = re.compile(r"^[ \t]*={3}[!+]*[ \t]+\"([^\"\n]+)\"", re.M)  # whose title can be an anchor
_REPEATED = re.compile(r"[-_]\d+$")
_SUFFIXES = (".md", ".rst", ".mdx", ".markdown", ".txt", ".ipynb", ".html", ".htm")
_INDEXES = (
    "index.md",
    "index.rst",
    "readme.md",
    "_index.md",
    "index.mdx",
    "index.html",
)
_PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf")
_GENERATORS = ("*.py", "*.sh", "*.js", "Makefile", ".gitignore", "noxfile*", "tox.ini")
_BUILT_IN = frozenset({"genindex", "modindex", "search", "py-modindex", "self"})
_REMEMBERED = 4_096  # pages: most are the same in both states
_ENOUGH, _RELIABLE = 5, 0.8  # references of a kind, and the share of them that leads somewhere
_RULES = {
    "anchor": ("link-anchor", "no heading or anchor"),
    "doc": ("link-reference", "no page"),
    "label": ("link-reference", "no label"),
    "term": ("link-reference", "no term of a glossary"),
    "name": ("link-name", "no description of the name"),
}


class Reference(NamedTuple):
    """A reference as a page writes it, with its line, from 1."""

    kind: str  # file, bare, absolute, anchor, doc, label, term, name
    target: str
    line: int
    namespace: str = ""  # of a name


@dataclass(frozen=True)
class PageLinks:
    """What a page refers to, and what others can refer to in it."""

    references: tuple[Reference, ...]
    headings: Mapping[str, str]  # a title as anchors are compared, to the title
    names: frozenset[tuple[str, str]]  # of roles: namespace and name
    is_open: bool  # it has parts that are written elsewhere, so anchors of it are not known


class LinkMap:
    """Every reference of one state, and where it leads."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.pages = {path: read_links(text, path) for path, text in state.texts.items()}
        self._paths = {path.casefold() for path in state.blobs}

        self._folders: set[str] = set()
        for path in self._paths:
            self._folders.update(map(str, PurePosixPath(path).parents))

        self._pages_folded = {path.casefold(): path for path in self.pages}

    @cached_property
    def _names(self) -> frozenset[tuple[str, str]]:
        return frozenset().union(*(page.names for page in self.pages.values()))

    @cached_property
    def broken(self) -> dict[tuple[str, str, str], tuple[Reference, str]]:
        """References that lead nowhere by page, kind and target, each with what lacks it."""
        broken = {}
        for path, page in self.pages.items():
            for reference in page.references:
                lacking = self.page_lacking(path, reference)
                if lacking is not None:
                    broken[path, reference.kind, reference.target] = (reference, lacking)

        return broken

    def resolves(self, kind: str) -> bool | None:
        """Whether references of a kind lead somewhere as a rule; None where there are few."""
        count = 0
        for page in self.pages.values():
            count += sum(reference.kind == kind for reference in page.references)

        broken = sum(broken_kind == kind for _, broken_kind, _ in self.broken)
        if count < _ENOUGH:
            return None

        return broken <= (1 - _RELIABLE) * count

    def places(self, page: str, target: str) -> Iterator[str]:
        """The paths, in small letters, that a relative or absolute target of a page may mean."""
        name = unquote(target).casefold().strip()
        # A site may serve each page as a folder, so that relative addresses begin in there.
        folders = [posixpath.dirname(page.casefold()), posixpath.splitext(page.casefold())[0]]

        if name.startswith("/"):
            folders = [str(folder) for folder in PurePosixPath(page.casefold()).parents]
            folders.append(self._state.folder.casefold())

        for folder in folders:
            plain = posixpath.normpath(posixpath.join(folder, name.lstrip("/")))
            stem, suffix = posixpath.splitext(plain)
            yield plain
            yield from (plain + ending for ending in _SUFFIXES)

            if suffix in (".html", ".htm"):
                yield from (stem + ending for ending in _SUFFIXES)

            yield from (posixpath.join(plain, index).casefold() for index in _INDEXES)

    def find_page(self, page: str, target: str) -> str | None:
        """The page of prose that a target means."""
        if not target:
            return page if page in self.pages else None

        known = (self._pages_folded.get(place) for place in self.places(page, target))
        return next(filter(None, known), None)

    def has(self, page: str, target: str) -> bool:
        """Whether a target is a file or a folder, or lies where nobody can tell."""
        opaque = tuple(f"{path.casefold()}/" for path in self._state.opaque)
        for place in self.places(page, target):
            is_outside = place.startswith("..") or f"{place}/".startswith(opaque)
            if is_outside or place in self._paths or place in self._folders:
                return True

        return False

    def reads_names(self, page: str) -> bool:
        """Whether Sphinx reads a page, so that a link of Markdown can lead to a name."""
        folders = PurePosixPath(page.casefold()).parents
        return any(str(folder / "conf.py") in self._paths for folder in folders)

    def page_lacking(self, path: str, reference: Reference) -> str | None:
        """The page that lacks what a reference leads to, its own for all but anchors; None where it
        leads somewhere.
        """
        kind = reference.kind
        target = reference.target

        if kind == "anchor":
            file, _, anchor = target.partition("#")
            page = self.find_page(path, file)
            if page is None or self._has_anchor(page, anchor):
                return None

            return page

        if kind in ("file", "bare", "absolute"):
            is_label = kind == "bare" and ("ref", target.casefold()) in self._names
            return None if is_label or self.has(path, target) else path

        if kind == "doc":
            is_there = target in _BUILT_IN or "://" in target or self.has(path, target)
            return None if is_there else path

        return None if self._has_name(reference) else path

    def _has_anchor(self, page: str, anchor: str) -> bool:
        links = self.pages[page]
        if links.is_open:
            return True

        anchors = {*links.headings, *(loose(name) for _, name in links.names)}
        forms = {loose(anchor), loose(_REPEATED.sub("", anchor))}
        is_line = re.fullmatch(r"L\d+(?:-L\d+)?|:~:text=.*|top", anchor) is not None
        return is_line or "" in forms or bool(forms & anchors)

    def _has_name(self, reference: Reference) -> bool:
        """Whether a label, a term or a name is described."""
        namespace = reference.namespace
        target = reference.target

        if namespace != "code":
            name = target.casefold()
            if namespace == "ref" and (name in _BUILT_IN or loose(name) in self._titles):
                return True
            return (namespace, name) in self._names

        name = target.lstrip("~!.").removesuffix("()")
        owner = name.rpartition(".")[0]
        return (namespace, name) in self._names or (namespace, owner) in self._names

    @cached_property
    def _titles(self) -> frozenset[str]:
        """Every title: an extension of Sphinx makes labels of them, behind the name of the page."""
        titles: set[str] = set()
        for path, page in self.pages.items():
            stem = posixpath.splitext(path)[0].removeprefix(f"{self._state.folder}/")
            titles.update(page.headings)
            titles.update(loose(stem) + title for title in page.headings)

        return frozenset(titles)


def find_broken_links(base: State, head: State) -> list[Finding]:
    """References that lead nowhere at the head and did not fail at the base."""
    base_map = LinkMap(base)
    head_map = LinkMap(head)
    gone_targets = {key[1:] for key in base_map.broken if key[0] not in head_map.pages}

    findings = []
    for key, (reference, lacking) in head_map.broken.items():
        page, kind, target = key
        if key in base_map.broken or (kind, target) in gone_targets:
            continue

        was_there = _was_there(base_map, page, reference)
        if was_there or _is_certain(
            base_map,
            head_map,
            head,
            page,
            reference,
        ):
            maps = base_map, head_map
            findings.append(
                _describe(
                    *maps,
                    page,
                    reference,
                    lacking,
                    was_there=was_there,
                )
            )

    return findings


def _was_there(
    base_map: LinkMap,
    page: str,
    reference: Reference,
) -> bool:
    """Whether the base has what the head lacks; an anchor of a page that it has not proves
    nothing. A page that is new asks the base as well.
    """
    file = reference.target.partition("#")[0]
    is_known = reference.kind != "anchor" or base_map.find_page(page, file) is not None
    return is_known and base_map.page_lacking(page, reference) is None


def _may_be_name(reference: Reference) -> bool:
    """Whether MyST may read a link as a label or a name of code, of this project or another."""
    file, _, anchor = reference.target.partition("#")
    if reference.kind == "anchor":
        return not file or not anchor[0].isalnum()

    return "/" not in file and posixpath.splitext(file)[1].lower() not in (*_SUFFIXES, *_PICTURES)


def _is_certain(
    base_map: LinkMap,
    head_map: LinkMap,
    head: State,
    page: str,
    reference: Reference,
) -> bool:
    """Whether a reference that is new really leads nowhere: its kind is one that the repository
    resolves, nothing outside of the pages describes it, and no program writes it.
    """
    resolves = base_map.resolves(reference.kind)
    if resolves is None:
        resolves = head_map.resolves(reference.kind)
    if reference.kind == "name" or resolves is False:
        return False
    if any(key[1:] == reference[:2] for key in base_map.broken):
        return False
    if reference.kind in ("label", "term"):
        return ":" not in reference.target and not head.mentions(f".. _{reference.target}:")
    if head_map.reads_names(page) and _may_be_name(reference):
        return False

    name = posixpath.basename(reference.target)
    is_file = reference.kind == "doc" or (reference.kind != "anchor" and "." in name)
    return not (is_file and head.mentions(name, *_GENERATORS))


def _describe(
    base_map: LinkMap,
    head_map: LinkMap,
    page: str,
    reference: Reference,
    lacking: str,
    *,
    was_there: bool,
) -> Finding:
    """The finding of one reference, with what it led to and what may be meant now."""
    rule, missing = _RULES.get(reference.kind, ("link-file", "no file"))
    if reference.kind == "anchor":
        place = f" in {lacking}"
    else:
        place = ""

    message = f"`{reference.target}` leads nowhere: {missing}{place}"
    old = ""
    if was_there:
        message += "; the base had it"

    if was_there and reference.kind == "anchor":
        anchor = reference.target.partition("#")[2]
        base_page = base_map.pages.get(lacking)
        known = base_page.headings if base_page else {}
        old = known.get(loose(anchor), "")
        headings = head_map.pages[lacking].headings

        added = []
        for form in headings:
            if form not in known:
                added.append(headings[form])

        if old:
            message += f" as the heading “{old}”"
        if known and len(added) == 1:
            message += f"; perhaps “{added[0]}” is meant, which is new there"

    if reference.kind == "name":
        level = Level.WARNING
    else:
        level = Level.ERROR

    return Finding(
        rule,
        level,
        page,
        reference.line,
        message,
        base_says=old,
    )


def loose(title: str) -> str:
    """A title or an anchor as they are compared: letters and digits only, since generators differ
    in the rest.
    """
    plain = unicodedata.normalize("NFKD", unquote(title)).casefold()
    return "".join(letter for letter in plain if letter.isalnum())


@lru_cache(_REMEMBERED)
def read_links(text: str, path: str) -> PageLinks:
    """What a page refers to and what others can refer to in it."""
    if prose_language(path) == "rst":
        return _read_rst(text)
    return _read_markdown(text)


def _read_markdown(text: str) -> PageLinks:
    front = FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    plain = _without_code(text)

    references: list[Reference] = []
    for pattern in (_LINK, _HTML):
        for match in pattern.finditer(plain, begin):
            target = next(filter(None, match.groups()), "")
            references += _classify(target, _line_of(text, match.start()))

    for match in _DEFINED.finditer(plain, begin):
        uses = plain.casefold().count(f"[{match[1].casefold()}]")
        if uses > 1:  # one that nothing uses is unseen
            references += _classify(match[2], _line_of(text, match.start()))

    for match in _MYST_ROLE.finditer(_FENCE.sub(_blank, f"{text}\n")):
        role = match[1].rpartition(":")[2]
        target = match[2] or match[3]
        references += _role(role, target, _line_of(text, match.start()))

    references += _directives(text)
    labels = []
    for label in _MYST_LABEL.findall(plain):
        labels.append(label.casefold())

    titles = []
    for heading in markdown_headings(text, begin):
        titles.append(heading.title)

    titles += map(plain_title, _ITEM_HEADING.findall(_FENCE.sub(_blank, f"{text}\n")))
    titles += _TAB.findall(plain)
    stated = [*_HTML_ID.findall(plain), *_STATED_ID.findall(plain)]

    headings = {}
    for title in [*stated, *titles]:
        headings[loose(title)] = title

    names = {("ref", label) for label in labels}
    evaluated = [match[1] or f".. {match[2]}:: {match[3]}" for match in _EVALUATED.finditer(text)]
    names.update((anchor.namespace, anchor.name) for anchor in rst_anchors("\n".join(evaluated)))
    return PageLinks(
        tuple(references),
        headings,
        frozenset(names),
        bool(_INCLUDED.search(plain)),
    )


def _read_rst(text: str) -> PageLinks:
    lines = text.split("\n")
    references: list[Reference] = []
    roles, titles = rst_roles(text)

    for role in roles:
        line = role.line
        while line + 1 < len(lines) and role.target not in lines[line] and line - role.line < 40:
            line += 1

        is_exact = role.target in lines[line]
        number = (line if is_exact else role.line) + 1
        references += _role(role.role, role.target, number)

    references += _directives(text)
    names = frozenset((anchor.namespace, anchor.name) for anchor in rst_anchors(text))

    headings = {}
    for title in titles:
        headings[loose(title)] = title

    return PageLinks(
        tuple(references),
        headings,
        names,
        ".. include::" in text,
    )


def _classify(target: str, line: int) -> Iterator[Reference]:
    """The references that a link of Markdown is: to a file, and to an anchor of it."""
    if _ELSEWHERE.match(target):
        return

    file, has_anchor, anchor = target.partition("#")
    file = file.partition("?")[0]
    if file:
        if posixpath.splitext(file.rstrip("/"))[1]:
            kind = "file"
        else:
            kind = "bare"

        yield Reference(
            "absolute" if file.startswith("/") else kind,
            file,
            line,
        )

    if has_anchor and anchor:
        yield Reference("anchor", f"{file}#{anchor}", line)


def _role(
    role: str,
    target: str,
    line: int,
) -> Iterator[Reference]:
    """The reference that a role is, where it is one that can be followed."""
    namespace = namespace_of(role)
    target = " ".join(target.split())

    if role == "doc" and not _ELSEWHERE.match(target):  # another project's has its name before it
        yield Reference("doc", target, line)
    elif namespace in ("ref", "term"):
        kind = "label" if namespace == "ref" else "term"
        yield Reference(kind, target.casefold(), line, namespace)
    elif namespace in ("code", "option", "envvar", "confval"):
        yield Reference("name", target, line, namespace)


def _directives(text: str) -> Iterator[Reference]:
    """Entries of tables of contents, and files that directives show."""
    for match in _DIRECTIVE.finditer(text):
        line = _line_of(text, match.start())
        if match[1] != "toctree":
            if match[2] and not _ELSEWHERE.match(match[2]):
                yield Reference(
                    "absolute" if match[2][0] == "/" else "file",
                    match[2],
                    line,
                )
            continue

        is_fenced = "{" in match[0]
        for number, entry in enumerate(text[match.end() + 1 :].split("\n"), line + 1):
            if is_fenced:
                is_end = entry.startswith(("```", ":::"))
            else:
                is_end = not entry[:1].isspace()

            if entry.strip() and is_end:
                break

            target = _ENTRY.match(entry.strip())
            if target is None or entry.strip().startswith((":", "..", "---")):
                continue

            path = (target[1] or target[2]).strip()
            if not _ELSEWHERE.match(path):
                yield Reference("doc", path, number)


def _without_code(text: str) -> str:
    """A page without its code and comments, with as many characters and lines."""
    return _CODE.sub(_blank, _FENCE.sub(_blank, f"{text}\n"))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
