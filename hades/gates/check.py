"""A gate: the frames of one boundary, its suite, and what to say when a rule is broken."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hades.errors import ContractBroken
from hades.gates import frames
from hades.ports.store import GraphStore
from hades.reports.contract_page import Gate, Hit, write_contract_page
from schemas.contracts.rule import Finding, Suite
from schemas.contracts.suites import suite_of
from schemas.contracts.validate import validate

PAGE = "contracts.html"
_KEYS_TOLD = 3


@dataclass(frozen=True)
class Checked:
    """What one boundary's rules said. `rules` counts those that were checked, `rows` what they looked at."""

    boundary: str
    rules: int
    findings: tuple[Finding, ...]
    rows: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def is_green(self) -> bool:
        """Whether no rule is broken."""
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "is_green": self.is_green}


def check(
    store: GraphStore,
    boundary: str,
    *,
    snapshot: Path | None = None,
    generation: str | None = None,
    required: bool = False,
) -> Checked:
    """Check every rule of a boundary; nothing is written and nothing is raised for a broken rule.

    `snapshot` is the folder that is about to serve, for the boundary of that name. `generation` is that of the weights
    bridges must be of, by default the ledger's. A stage that never ran is green with a note, unless it is `required`.
    """
    began = time.perf_counter()
    suite = suite_of(boundary)
    found = frames.frames_of(store, boundary, snapshot=snapshot, generation=generation)
    if found.absent:
        findings = [_never_ran(suite, found.absent)] if required else []
        return Checked(boundary, 0, tuple(findings), 0, time.perf_counter() - began, (found.absent,))
    findings = validate(suite, found.tables)
    rules = sum(rule.frame in found.tables for rule in suite.rules)
    seconds = round(time.perf_counter() - began, 3)
    return Checked(boundary, rules, tuple(findings), found.rows, seconds, found.notes)


def require(checked: Checked | Iterable[Checked]) -> None:
    """Stop here when a rule is broken."""
    several = (checked,) if isinstance(checked, Checked) else tuple(checked)
    if any(one.findings for one in several):
        raise ContractBroken(broken_message(several))


def broken_message(checked: Sequence[Checked]) -> str:
    """Which rules are broken by which rows, and what to do; one line a rule."""
    findings = [finding for one in checked for finding in one.findings]
    if not findings:
        return "every contract holds"
    count = "1 contract is broken" if len(findings) == 1 else f"{len(findings)} contracts are broken"
    lines = [f"{count}; what serves was left alone"]
    lines += [
        f"{finding.rule}: {finding.sentence}, but {finding.failed} of {finding.rows} rows of {finding.frame} break it"
        f"{_keys(finding)}{f'; {finding.repair}' if finding.repair else ''}"
        for finding in findings
    ]
    return "\n".join(lines)


def write_page(checked: Sequence[Checked], reports: Path) -> Path:
    """One HTML page over these boundaries, in the folder of reports; it replaces the last one."""
    gates = [
        Gate(
            boundary=one.boundary,
            about=suite_of(one.boundary).about,
            rules=[(rule.id, rule.sentence) for rule in suite_of(one.boundary).rules],
            hits=[
                Hit(finding.rule, finding.sentence, finding.frame, finding.failed, finding.rows,
                    list(zip(finding.keys, finding.observed, strict=False)), finding.repair)
                for finding in one.findings
            ],
            rows=one.rows,
            seconds=one.seconds,
            notes=one.notes,
        )
        for one in checked
    ]  # fmt: skip
    return write_contract_page(reports / PAGE, gates)


def _never_ran(suite: Suite, absent: str) -> Finding:
    rule = f"{suite.boundary}.stage_has_run"
    return Finding(rule, suite.boundary, "the stage has run", 1, 0, (), (absent,), "run `hades run nightly`")


def _keys(finding: Finding) -> str:
    if not finding.keys:
        return f" ({', '.join(finding.observed)})" if finding.observed else ""
    told = ", ".join(finding.keys[:_KEYS_TOLD])
    return f" ({told}{', ...' if finding.failed > _KEYS_TOLD else ''})"
