"""One contract: its frames are read, its rules evaluated, and a broken rule is reported with its repair."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades.errors import ContractBroken
from hades.ports.store import GraphStore
from hades.reports.contract_page import ContractSection, Hit, write_contract_page
from hades.stages.contracts import frames
from hades.stages.contracts.source import Marks
from schemas.contracts.all_contracts import contract_named
from schemas.contracts.evaluate import find_broken_rows, is_about_table
from schemas.contracts.rule import Contract, Finding
from schemas.contracts.validate import Engine, validate

PAGE = "contracts.html"
_KEYS_TOLD = 3


@dataclass(frozen=True)
class ContractResult:
    """What one contract's rules said. `rules` counts those that hold or not, `rows` the rows that were checked now.

    `carried` are rows that were checked before and have not changed since, nor anything they refer to.
    """

    contract: str
    rules: int
    findings: tuple[Finding, ...]
    rows: int
    seconds: float
    notes: tuple[str, ...] = ()
    carried: int = 0

    @property
    def is_green(self) -> bool:
        """Whether no rule is broken."""
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "is_green": self.is_green}


def check_contract(
    store: GraphStore,
    name: str,
    *,
    snapshot: Path | None = None,
    generation: str | None = None,
    required: bool = False,
    engine: Engine = "arrow",
    known: Marks | None = None,
) -> ContractResult:
    """Check every rule of a contract; nothing is written and nothing is raised for a broken rule.

    Rows in parts of the store that are `known` to hold are left out where nothing they refer to has changed.

    `snapshot` is the folder that is about to serve, for the contract of that name. `generation` is that of the weights
    bridges must be of, by default the ledger's. A stage that never ran is green with a note, unless it is `required`.
    """
    began = time.perf_counter()
    contract = contract_named(name)
    found = frames.frames_of(store, name, snapshot=snapshot, generation=generation, known=known)
    if found.absent:
        findings = [_never_ran(contract, found.absent)] if required else []
        return ContractResult(name, 0, tuple(findings), 0, time.perf_counter() - began, (found.absent,))
    findings = [
        replace(one, rows=one.rows + found.left_out.get(one.frame, 0))
        for one in validate(contract, found.tables, engine=engine)
    ]
    rules = sum(rule.frame in found.tables for rule in contract.rules)
    seconds = round(time.perf_counter() - began, 3)
    return ContractResult(name, rules, tuple(findings), found.rows, seconds, found.notes, found.carried)


def find_broken_keys(store: GraphStore, name: str) -> dict[str, list[str]]:
    """The keys of all rows that break a rule of a contract, by frame."""
    found = frames.frames_of(store, name, snapshot=None, generation=None)
    broken: dict[str, list[str]] = {}
    for rule in contract_named(name).rules:
        frame = found.tables.get(rule.frame)
        if frame is None or is_about_table(rule.expectation):
            continue
        rows = find_broken_rows(rule.expectation, frame)
        keys = frame.column("_key").take(pa.array(rows, pa.int64())).to_pylist()
        broken.setdefault(rule.frame, []).extend(keys)
    return {frame: sorted(set(keys)) for frame, keys in broken.items() if keys}


def require_contracts(checked: ContractResult | Iterable[ContractResult]) -> None:
    """Stop here when a rule is broken."""
    several = (checked,) if isinstance(checked, ContractResult) else tuple(checked)
    if any(one.findings for one in several):
        raise ContractBroken(describe_broken(several))


def describe_broken(checked: Sequence[ContractResult]) -> str:
    """Which rules are broken by which rows, and what to do; one line a rule."""
    findings = [finding for one in checked for finding in one.findings]
    if not findings:
        return "every contract holds"
    count = "1 contract is broken" if len(findings) == 1 else f"{len(findings)} contracts are broken"
    return "\n".join([f"{count}; what serves was left alone", *(_line(finding) for finding in findings)])


def write_page(checked: Sequence[ContractResult], reports: Path) -> Path:
    """One HTML page over these contracts, in the folder of reports; it replaces the last one."""
    sections = [
        ContractSection(
            contract=one.contract,
            about=contract_named(one.contract).about,
            rules=[(rule.id, rule.sentence) for rule in contract_named(one.contract).rules],
            hits=[_hit(finding) for finding in one.findings],
            checked=one.rules,
            rows=one.rows,
            carried=one.carried,
            seconds=one.seconds,
            notes=one.notes,
        )
        for one in checked
    ]
    return write_contract_page(reports / PAGE, sections)


def _never_ran(contract: Contract, absent: str) -> Finding:
    rule = f"{contract.name}.stage_has_run"
    return Finding(rule, contract.name, "the stage has completed", 1, 0, (), (absent,), "run `hades build`")


def _line(finding: Finding) -> str:
    """What one broken rule says in a message."""
    repair = f"; {finding.repair}" if finding.repair else ""
    return f"{finding.rule}: {finding.sentence}, but {_where(finding)}{repair}"


def _where(finding: Finding) -> str:
    if not finding.keys:  # a rule of the whole and not of its rows
        return f"it has not: {', '.join(finding.observed)}"
    told = ", ".join(finding.keys[:_KEYS_TOLD])
    more = ", ..." if finding.failed > _KEYS_TOLD else ""
    return f"{finding.failed} of {finding.rows} rows of {finding.frame} break it ({told}{more})"


def _hit(finding: Finding) -> Hit:
    keys = finding.keys or (finding.frame,)
    examples = list(zip(keys, finding.observed, strict=True))
    failed, rows = (finding.failed, finding.rows) if finding.keys else (1, 1)
    return Hit(finding.rule, finding.sentence, finding.frame, failed, rows, examples, finding.repair)
