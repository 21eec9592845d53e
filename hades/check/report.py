"""Findings of a check, and how they are shown: to people, in a pull request, as SARIF, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib.metadata import version
from typing import Literal
from urllib.parse import quote

from schemas.record import JsonObject


class Level(StrEnum):
    """How much a finding matters; only an error makes a check red. The words are those of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


# Every rule, with what it says.
RULES: Mapping[str, str] = {
    "answer-lost": "A question that was answered is not answered any more",
    "answer-moved": "A question is answered from another source",
    "answer-missing": "A question has no answer, before the change either",
    "contradiction": "Two pages state different values of one thing",
    "link-file": "A link leads to a file that is not there",
    "link-anchor": "A link leads to a heading that is not there",
    "link-reference": "A reference leads to a page, a label or a term that is not there",
    "link-name": "A reference leads to a name that is not described any more",
    "page-unasked": "A new page answers no question that anyone asks",
}
HEADINGS: Mapping[str, str] = {
    "answer": "Questions",
    "contradiction": "Contradictions",
    "link": "Links and names",
    "page": "New pages",
}
Format = Literal["text", "markdown", "sarif", "json"]
_ROWS = 10  # of the table in a comment
_FOLDED = 100  # findings with details in a comment, which has a limit of its own
_CHARACTERS = 300
_SIGNS = {
    Level.ERROR: "✗",
    Level.WARNING: "!",
    Level.NOTE: "·",
}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """One thing that a change broke, and where: a page of the head, or the file of questions."""

    rule: str
    level: Level
    path: str
    line: int
    message: str
    question: str = ""
    base_says: str = ""  # what the base says
    head_says: str = ""  # what the head says


@dataclass(frozen=True)
class CheckReport:
    """What a check found, between which states, and what it took."""

    base: str
    head: str
    folder: str
    findings: tuple[Finding, ...]
    counts: Mapping[str, int]  # pages, changed, questions, answered, embedded
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_green(self) -> bool:
        """Whether nothing is broken."""
        return not self.count(Level.ERROR)

    def count(self, level: Level) -> int:
        """How many findings have a level."""
        return sum(finding.level == level for finding in self.findings)

    def as_dict(self) -> JsonObject:
        """The report as JSON."""
        levels = {}
        for level in Level:
            levels[f"{level}s"] = self.count(level)

        return {
            "ok": self.is_green,
            "base": self.base,
            "head": self.head,
            "docs": self.folder or ".",
            "counts": {**self.counts, **levels},
            "findings": list(map(asdict, self.findings)),
            "notes": list(self.notes),
            "seconds": dict(self.seconds),
        }


def verdict(report: CheckReport) -> str:
    """The result in a sentence."""
    counts = report.counts
    states = f"{report.base[:10]}..{report.head[:10]}"
    share = f"{counts['answered']} of {counts['questions']} questions answered"

    if "questions" not in report.seconds:
        share = "no question asked"

    changed = f"{counts['changed']} of {counts['pages']} pages changed"
    if report.is_green and not report.count(Level.WARNING):
        return f"Nothing is broken ({states}: {changed}, {share})."

    errors = _plural(report.count(Level.ERROR), "error")
    warnings = _plural(report.count(Level.WARNING), "warning")
    word = "Green" if report.is_green else "Red"
    return f"{word}: {errors}, {warnings} ({states}: {changed}, {share})."


def text_lines(report: CheckReport) -> Iterator[str]:
    """The report for a terminal."""
    for prefix, heading in HEADINGS.items():
        findings = [row for row in report.findings if row.rule.startswith(prefix)]
        if not findings:
            continue

        yield f"{heading}:"
        for finding in findings:
            yield f"  {_SIGNS[finding.level]} {_where(finding)}  [{finding.rule}]"
            yield f"    {finding.question or finding.message}"
            if finding.question:
                yield f"    {finding.message}"

            for name, sentence in _sayings(finding) if finding.question else ():
                yield f"      {name}: {_shorten(sentence)}"

        yield ""

    for note in report.notes:
        yield f"  {_SIGNS[Level.NOTE]} {note}"

    yield verdict(report)


def markdown(report: CheckReport) -> str:
    """The report as a comment on a pull request: the verdict, a table, the details folded."""
    mark = "✅" if report.is_green else "❌"
    lines = ["<!-- hades check -->", f"{mark} **Documentation check.** {verdict(report)}", ""]

    if report.findings:
        lines += ["| | where | what |", "|---|---|---|"]

    for finding in report.findings[:_ROWS]:
        about = f"{finding.question} {finding.message}".strip()
        lines.append(f"| {finding.level} | {_cell(_where(finding))} | {_cell(about)} |")

    if len(report.findings) > _ROWS:
        lines.append(f"| | | {len(report.findings) - _ROWS} more below |")
    if report.findings:
        lines.append("")

    for prefix, heading in HEADINGS.items():
        findings = [row for row in report.findings if row.rule.startswith(prefix)]
        if findings:
            lines += _fold(f"{heading} ({len(findings)})", _details(findings[:_FOLDED]))

    if report.notes:
        lines += _fold("Notes", [f"- {_escape(note)}" for note in report.notes])

    return "\n".join(lines).rstrip() + "\n"


def _fold(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def _details(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        if finding.question:
            about = f"**{_escape(finding.question)}** "
        else:
            about = ""

        lines.append(f"- `{_where(finding)}` {about}{_escape(finding.message)} ({finding.rule})")
        for name, sentence in _sayings(finding):
            lines.append(f"  - {name}: {_escape(_shorten(sentence))}")

    return lines


def _sayings(finding: Finding) -> Iterator[tuple[str, str]]:
    """What the base and the head say; a sentence that both say is no news."""
    if finding.base_says != finding.head_says:
        sayings = (("before", finding.base_says), ("now", finding.head_says))
        yield from (saying for saying in sayings if saying[1])


def sarif(report: CheckReport) -> JsonObject:
    """The report as SARIF 2.1.0, which code hosts show beside the lines of a change."""
    names = list(RULES)

    rules = []
    for name, about in RULES.items():
        rules.append(
            {
                "id": name,
                "shortDescription": {"text": about},
            }
        )

    results = []
    for finding in report.findings:
        region = {"startLine": max(finding.line, 1)}
        place = {
            "artifactLocation": {"uri": quote(finding.path)},
            "region": region,
        }
        rule = {
            "ruleId": finding.rule,
            "ruleIndex": names.index(finding.rule),
        }
        text = f"{finding.question} {finding.message}".strip()
        what = {
            "level": str(finding.level),
            "message": {"text": text},
        }
        results.append(
            {
                **rule,
                **what,
                "locations": [{"physicalLocation": place}],
            }
        )

    driver = {
        "name": "hades check",
        "version": version("hades-graphrag"),
        "rules": rules,
    }
    runs = [
        {
            "tool": {"driver": driver},
            "results": results,
        }
    ]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": runs,
    }


def _where(finding: Finding) -> str:
    if finding.line:
        return f"{finding.path}:{finding.line}"
    return finding.path


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    if len(plain) <= _CHARACTERS:
        return plain
    return f"{plain[: _CHARACTERS - 1]}…"


def _cell(text: str) -> str:
    return _escape(_shorten(text)).replace("|", "\\|")


def _escape(text: str) -> str:
    """Text that makes no tags and calls nobody: what pages say is not trusted."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(plain.replace("@", "@\u200b").split())


def _plural(count: int, noun: str) -> str:
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}s"
