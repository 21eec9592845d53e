"""Defaults, required versions and dates that pages state, and the pages that contradict each other.

Only what is said of a name that means one thing, in words that state no condition, counts: a
missed contradiction costs less than a false one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import PurePosixPath

from hades.check.pages import State
from hades.check.report import Finding, Level
from hades.ingest.sources.documents import prose_language, read_prose
from hades.ingest.sources.files import Unusable
from hades.text.dates import times_in
from hades.text.sentences import each_sentence

_NAME = (
    r"(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z][a-z0-9-]*(?:[._][a-z0-9]+)+"
    r"|[a-z][\w-]*(?: [a-z][\w-]*){0,3} --[a-z][a-z0-9-]+)"
)
_CODE_NAME = rf"(?:`({_NAME})`|\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b)"
_NOUN = r"(?:\s+(?:setting|option|variable|environment variable|parameter|flag|key|value))?"
_STATED = (
    re.compile(
        rf"\bdefault(?: value)? (?:of|for) (?:the )?{_CODE_NAME}{_NOUN} is (.+)",
        re.I,
    ),
    re.compile(rf"{_CODE_NAME}{_NOUN} (?:defaults to|has a default(?: value)? of) (.+)"),
    re.compile(rf"{_CODE_NAME}{_NOUN} is (.{{1,40}}?) by default"),
    re.compile(rf"{_CODE_NAME}{_NOUN} \((?:the )?default(?:s to|:| is)?\s+([^()]+)\)"),
)
_LABELLED = re.compile(
    r"\s*(?:[-*+]\s+)?(?:[*_]{0,2}defaults?(?: value)?:?[*_]{0,2}\s*(?::|(?<=:[*_])|(?<=:[*_]{2}))"
    r"|defaults to)\s*(\S.*)",
    re.I,
)
_ALONE = re.compile(rf"\s*(?:#{{1,6}}\s+)?`?({_NAME})`?\s*$")
_HEADING = re.compile(r"#{1,6}\s")
_REQUIRED = re.compile(
    r"\b(?:([A-Z]\w+) (?:requires|needs|supports)|requires:?) (?:at least )?([A-Z][\w.]+) "
    r"(\d+(?:\.\d+)+)(?:\+| (?:or|and) (?:newer|later|above|up|higher|greater))",
    re.I,
)
_RELEASED = re.compile(
    r"\b([A-Z][\w-]*(?: [A-Z][\w-]*)? v?\d+(?:\.\d+)+) (?:was|is|will be) released (.{4,40})"
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|unless|except|otherwise|previously|formerly|was|were|used to|before"
    r"|until|prior|older|old|earlier|changed|since|deprecated|removed|versions?|instead|example"
    r"|e\.g|suppose|overrides?|overridden|production|development|windows|macos|linux|docker"
    r"|tests?|depends|depending|example|let's|now|will|would|could|can|may|might)\b",
    re.I,
)
_LITERAL = re.compile(
    r"`(?P<code>[^`\n]{1,60})`|(?P<quoted>\"[^\"\n]{0,40}\"|'[^'\n]{0,40}')"
    r"|(?P<number>(?<![\w.])-?\d[\d,_]*(?:\.\d+)?)(?:\s*(?P<unit>[A-Za-z]+))?(?![\w])"
    r"|\b(?P<word>true|false|yes|no|on|off|enabled|disabled)[*_]{0,2}(?=[.,;)|]|\s*$)",
    re.I,
)
_LEAD = re.compile(
    r"\s*(?:(?:to|the|a|an|value|of|is|currently|at)\s+){0,3}[*_]{0,2}",
    re.I,
)
_UNITS: Mapping[str, float] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("week", "weeks"), 604_800),
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib", "kilobyte", "kilobytes"), 1_024),
    **dict.fromkeys(("mb", "mib", "megabyte", "megabytes"), 1_024**2),
    **dict.fromkeys(("gb", "gib", "gigabyte", "gigabytes"), 1_024**3),
}
_TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "enabled"), "true"),
    **dict.fromkeys(("false", "no", "off", "disabled"), "false"),
}
_DATED_PAGE = re.compile(
    r"change|history|news|release|what.?s.?new|migrat|upgrad|deprecat|roadmap|archive|blog|adr|rfc",
    re.I,
)
_VERSION_PART = re.compile(
    r"(?:v|version[-_]?)?\d+(?:\.\w+)*|latest|stable|next|current|[a-z]{2}(?:[-_][A-Za-z]{2,4})?"
)
_BEFORE_CODE = re.compile(r"(?<=[.!?]) (?=`)")  # where a sentence begins with a name
_SETTING = re.compile(r"setting|option|key|config|variable|env|flag")  # parameters share names
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_DEFAULT_COLUMNS = ("default", "default value", "defaults")
_REMEMBERED = 4_096  # pages


@dataclass(frozen=True)
class Statement:
    """What a page says of a property of a named thing, and in which words."""

    subject: str
    about: str  # default, version of something, release date
    kind: str  # of the value: number, truth, text, version, date
    values: frozenset[str]  # spellings of it that mean the same
    path: str
    line: int
    sentence: str

    def contradicts(self, second: Statement) -> bool:
        """Whether both cannot be true: another page, the same kind of value, another value."""
        if self.path == second.path or self.kind != second.kind or self.values & second.values:
            return False
        return _edition_of(self.path) == _edition_of(second.path)


def find_contradictions(base: State, head: State) -> list[Finding]:
    """Pages that state different values at the head of what the base states in one way or not at
    all.
    """
    base_groups = _group(base)
    head_groups = _group(head)

    findings = []
    for key, statements in sorted(head_groups.items()):
        if next(_conflicts(base_groups.get(key, ())), None):
            continue  # said in two ways before: the name means two things, or it is known

        was_stated = set()
        for row in base_groups.get(key, ()):
            was_stated.add((row.path, row.values))

        for first, second in _conflicts(statements):
            is_first_old = (first.path, first.values) in was_stated
            changed, stays = (second, first) if is_first_old else (first, second)
            findings.append(_describe(key, changed, stays))
            break

    return findings


def _describe(
    key: tuple[str, str],
    changed: Statement,
    stays: Statement,
) -> Finding:
    subject, about = key
    message = (
        f"the {about} of `{subject}` differs from {stays.path}:{stays.line}: "
        f"“{_excerpt(changed)}” against “{_excerpt(stays)}”"
    )
    return Finding(
        "contradiction",
        Level.ERROR,
        changed.path,
        changed.line,
        message,
        base_says=stays.sentence,
        head_says=changed.sentence,
    )


def _excerpt(statement: Statement) -> str:
    return statement.sentence[:120]


def _conflicts(statements: Sequence[Statement]) -> Iterator[tuple[Statement, Statement]]:
    """Pairs of which one is wrong; none where a page itself gives two values: then the name means
    two things.
    """
    for first, second in combinations(statements, 2):
        if first.path == second.path and first.values.isdisjoint(second.values):
            return

    for first, second in combinations(statements, 2):
        if first.contradicts(second):
            yield first, second


def _group(state: State) -> dict[tuple[str, str], list[Statement]]:
    """Every statement of a state by what it is about."""
    groups: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    for path, text in state.texts.items():
        if not _DATED_PAGE.search(path):
            for statement in read_statements(text, path):
                groups[statement.subject, statement.about].append(statement)

    return groups


def _edition_of(path: str) -> tuple[str, ...]:
    """The folders that name a version or a language: pages of two editions may differ."""
    return tuple(filter(_VERSION_PART.fullmatch, PurePosixPath(path).parts[:-1]))


@lru_cache(_REMEMBERED)
def read_statements(text: str, path: str) -> tuple[Statement, ...]:
    """What a page states of names, in tables, under headings and in sentences."""
    try:
        prose = read_prose(
            text,
            path,
            prose_language(path) or "text",
        )
    except Unusable:
        return ()

    lines = _without_code(prose.text.split("\n"))
    statements = [*_read_tables(lines, path), *_read_described(lines, path)]

    first = 0
    for last in range(len(lines) + 1):
        is_end = last == len(lines) or not lines[last].strip() or lines[last].lstrip()[:1] in "-*+|"
        if is_end:
            statements += _read_paragraph(lines[first:last], path, first + 1)
            first = last

    return tuple(statements)


def _without_code(lines: Sequence[str]) -> list[str]:
    """The lines of a page, blank where code stands."""
    fence = ""

    plain = []
    for line in lines:
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None
        if mark is not None:
            if fence and mark[1].startswith(fence):
                fence = ""
            else:
                fence = fence or mark[1]

        plain.append("" if is_code else line)

    return plain


def _read_tables(lines: Sequence[str], path: str) -> Iterator[Statement]:
    """Rows of tables with a column of defaults, whose first cell is a name."""
    column = -1
    is_setting = False

    for number, line in enumerate(lines, 1):
        cells = []
        for cell in line.strip().strip("|").split("|"):
            cells.append(cell.strip())

        if not line.lstrip().startswith("|"):
            column = -1
        elif column < 0:
            names = [cell.strip("*_ ").casefold() for cell in cells]
            is_setting = _SETTING.search(names[0]) is not None
            defaults = [place for place, name in enumerate(names) if name in _DEFAULT_COLUMNS]
            column = defaults[0] if defaults else -1
        elif (
            column < len(cells)
            and (name := _ALONE.match(cells[0]))
            and (is_setting or name[1].isupper())
        ):
            yield from _statement(
                name[1],
                cells[column],
                path,
                number,
                line.strip(),
            )


def _read_described(lines: Sequence[str], path: str) -> Iterator[Statement]:
    """A default that a line of its own states, below a name that stands alone."""
    subject = ""
    for number, line in enumerate(lines, 1):
        alone = _ALONE.match(line)
        if alone:
            subject = alone[1]
        elif _HEADING.match(line):
            subject = ""

        label = _LABELLED.match(line)
        if subject and label and not _CONDITION.search(line):
            yield from _statement(
                subject,
                label[1],
                path,
                number,
                f"{subject}: {line.strip()}",
            )
            subject = ""


def _read_paragraph(
    lines: Sequence[str],
    path: str,
    first: int,
) -> Iterator[Statement]:
    """What the sentences of a paragraph state."""
    text = "\n".join(lines)
    if "|" in text[:3] or not text.strip():
        return

    for begin, end in each_sentence(text):
        sentence = " ".join(text[begin:end].split())
        line = first + text.count("\n", 0, begin)
        if released := _RELEASED.search(sentence):
            yield from _date(
                released[1],
                released[2],
                path,
                line,
                sentence,
            )
        if _CONDITION.search(re.sub(r"`[^`]*`", "", sentence)):
            continue

        for part in _BEFORE_CODE.split(sentence):
            for pattern in _STATED:
                if stated := pattern.search(part):
                    name = stated[1] or stated[2]
                    yield from _statement(name, stated[3], path, line, part)

        if required := _REQUIRED.search(sentence):
            subject = f"{required[1] or 'this project'}"
            about = f"required version of {required[2]}"
            version = frozenset((required[3],))
            yield Statement(
                subject,
                about,
                "version",
                version,
                path,
                line,
                sentence,
            )


def _statement(
    name: str,
    text: str,
    path: str,
    line: int,
    sentence: str,
) -> Iterator[Statement]:
    """The statement of a default, where its text begins with a value that can be compared."""
    kind, values = _read_value(text)
    if kind:
        yield Statement(
            name,
            "default",
            kind,
            values,
            path,
            line,
            " ".join(sentence.split()),
        )


def _date(
    subject: str,
    text: str,
    path: str,
    line: int,
    sentence: str,
) -> Iterator[Statement]:
    """The day on which something was released; a month or a year alone is not compared."""
    for mention in times_in(text)[:1]:
        start, end = mention.interval
        if start is not None and end is not None and (end - start).days <= 1:
            days = frozenset((f"{start:%Y-%m-%d}",))
            yield Statement(
                subject,
                "release date",
                "date",
                days,
                path,
                line,
                sentence,
            )


def _read_value(text: str) -> tuple[str, frozenset[str]]:
    """The kind of a value and its spellings; no kind where the text begins with anything else."""
    lead = _LEAD.match(text)
    literal = _LITERAL.match(text, lead.end() if lead else 0)

    if literal is None:
        return "", frozenset()

    kind = _canonical(literal)[0]
    matches = map(_canonical, _LITERAL.finditer(text, literal.start()))
    return kind, frozenset(value for value_kind, value in matches if value_kind == kind)


def _canonical(literal: re.Match[str]) -> tuple[str, str]:
    """A literal as it is compared; the kind is empty where it is an expression or no value."""
    text = next(part for part in literal.group("code", "quoted", "number", "word") if part)
    is_code = literal["code"] is not None
    number = re.fullmatch(r"(-?\d[\d,_]*(?:\.\d+)?)\s*([A-Za-z]*)", text.strip("\"'"))

    if number:
        unit = (literal["unit"] or number[2]).lower()
        amount = float(number[1].replace(",", "").replace("_", ""))
        return "number", f"{amount * _UNITS.get(unit, 1):g}"

    plain = text.strip("\"' ")
    if plain.casefold() in _TRUTH:
        return "truth", _TRUTH[plain.casefold()]
    if plain.casefold() in ("none", "null", "nil", "undefined", "unset", "empty", ""):
        return "", ""

    is_plain = re.fullmatch(r"[\w./:@%+-]{1,40}", plain) is not None
    if is_plain and (is_code or literal["quoted"]):
        return ("text", plain)

    return ("", "")
