"""Every contract in the order of the build: checking them, and what a broken one says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from hades.build.columns import Frames
from hades.build.context import BuildContext
from hades.build.contracts import graph, outputs, texts
from hades.build.contracts.own import OWN, own_contract, own_frames
from hades.build.contracts.rule import (
    Contract,
    ContractResult,
    Engine,
    Finding,
    Rule,
    default_engine,
    find_broken_rows,
    validate,
    write_gx_project,
)
from hades.errors import ContractBroken, HadesError
from hades.ports.store import GraphStore, RowStore
from hades.reports import page

_OF_STORE: tuple[tuple[Contract, Callable[[RowStore], Frames]], ...] = (
    (texts.NODES_CONTRACT, texts.node_frames),
    (texts.CHUNKS_CONTRACT, texts.chunk_frames),
    (texts.EMBEDDINGS_CONTRACT, texts.vector_frames),
    (graph.EDGES_CONTRACT, graph.edge_frames),
    (graph.HIERARCHY_CONTRACT, graph.hierarchy_frames),
    (graph.WEIGHTS_CONTRACT, graph.weight_frames),
    (outputs.BRIDGES_CONTRACT, outputs.bridge_frames),
)
CONTRACTS: tuple[Contract, ...] = (*(one for one, _ in _OF_STORE), outputs.SNAPSHOT_CONTRACT)
CONTRACT_NAMES: tuple[str, ...] = tuple(contract.name for contract in CONTRACTS)
RULES: tuple[Rule, ...] = tuple(rule for contract in CONTRACTS for rule in contract.rules)
CHUNK_VECTORS = "embeddings:doc_chunks"  # of a night before its entities have vectors
PAGE = "contracts.html"
_NAMED_KEYS = 3


def contract_named(name: str) -> Contract:
    """The contract of this name; raises ValueError when there is none."""
    for contract in (*CONTRACTS, outputs.EXAM_CONTRACT, outputs.RANKER_CONTRACT, outputs.STANDING_CONTRACT):
        if contract.name == name.partition(":")[0]:
            return contract
    raise ValueError(f"there is no contract {name!r}; there are {', '.join(CONTRACT_NAMES)}")


def read_frames(store: GraphStore, name: str, snapshot: Path | None = None) -> Frames:
    """The frames of a contract, read from one moment of the store."""
    if name == "snapshot":
        if snapshot is None:
            raise HadesError("checking a snapshot needs its folder; give `snapshot=`")
        return outputs.snapshot_frames(store, snapshot)
    readers = {contract.name: reader for contract, reader in _OF_STORE}
    readers[CHUNK_VECTORS] = partial(texts.vector_frames, collections=("doc_chunks",))
    with store.reading() as rows:
        return readers[name](rows)


def check_contract(
    store: GraphStore, name: str, *, snapshot: Path | None = None, engine: Engine | None = None
) -> ContractResult:
    """Check every rule of a contract; nothing is written and nothing is raised for a broken rule.

    `snapshot` is the folder that is about to serve, for the contract of that name. A stage that never ran is green
    with a note.
    """
    return check_frames(name, contract_named(name), lambda: read_frames(store, name, snapshot), engine)


def check_frames(
    name: str, contract: Contract, read: Callable[[], Frames], engine: Engine | None = None
) -> ContractResult:
    """Check every rule of a contract on frames that are read now, so that reading counts in the seconds."""
    began, frames, engine = time.perf_counter(), read(), engine or default_engine()
    broken = validate(contract, frames.tables, engine)
    rules = sum(rule.frame in frames.tables for rule in contract.rules)
    findings, warnings = (tuple(one for one in broken if one.severity == kind) for kind in ("stop", "warn"))
    notes = list(frames.notes)
    notes += [f"warning: {one.rule}: {one.sentence}, but {_where(one)}" for one in warnings]
    seconds = round(time.perf_counter() - began, 3)
    return ContractResult(name, rules, findings, frames.rows, seconds, tuple(notes), engine, warnings)


def find_broken_keys(store: GraphStore, name: str) -> dict[str, list[str]]:
    """The keys of all rows that break a rule of a contract, by frame."""
    contract, tables = contract_named(name), read_frames(store, name).tables
    broken: dict[str, set[str]] = {}
    frames = {rule.id: rule.frame for rule in contract.rules}
    for rule, (positions, _) in find_broken_rows(contract, tables).items():
        if positions:
            keys = tables[frames[rule]].column("_key").take(positions).to_pylist()
            broken.setdefault(frames[rule], set()).update(keys)
    return {frame: sorted(keys) for frame, keys in broken.items()}


def require_contracts(checked: Sequence[ContractResult]) -> None:
    """Stop here when a rule is broken."""
    if any(one.findings for one in checked):
        raise ContractBroken(describe_broken(checked))


def describe_broken(checked: Sequence[ContractResult]) -> str:
    """Which rules are broken by which rows, and what to do; one line a rule."""
    findings = [finding for one in checked for finding in one.findings]
    if not findings:
        return "every contract holds"
    count = "1 contract is broken" if len(findings) == 1 else f"{len(findings)} contracts are broken"
    lines = [
        f"{one.rule}: {one.sentence}, but {_where(one)}{f'; {one.repair}' if one.repair else ''}" for one in findings
    ]
    return "\n".join([f"{count}; what serves was left alone", *lines])


def _where(finding: Finding) -> str:
    if not finding.keys:  # a rule of the whole and not of its rows
        return f"it has not: {', '.join(finding.observed)}"
    named = ", ".join(finding.keys[:_NAMED_KEYS])
    more = ", ..." if finding.failed > _NAMED_KEYS else ""
    return f"{finding.failed} of {finding.rows} rows of {finding.frame} break it ({named}{more})"


def contract_of(result: ContractResult, home: Path) -> Contract:
    """The contract that was checked; without rules where it was the home's own and is gone."""
    own = own_contract(home) if result.contract == OWN else contract_named(result.contract)
    return own or Contract(OWN, "rules that are gone", ())


@dataclass(frozen=True)
class Outcome:
    """The results of several contracts, and the page that shows them."""

    checked: tuple[ContractResult, ...]
    page: Path

    @property
    def broken_rules(self) -> list[str]:
        """Ids of the rules that rows broke; none where the line may go on."""
        return [finding.rule for one in self.checked for finding in one.findings]

    @property
    def alerts(self) -> list[str]:
        """What to alert about: the broken rules in one line, or nothing."""
        return [",".join(self.broken_rules)] if self.broken_rules else []

    @property
    def message(self) -> str:
        """Which rules, which rows, where to read more."""
        return f"{describe_broken(self.checked)}; see {self.page}"

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row a contract, and one a broken rule."""
        rows: list[dict[str, Any]] = []
        for one in self.checked:
            rows.append({"contract": one.contract, "rules": one.rules, "broken": len(one.findings), "rows": one.rows})
            rows += [
                {"contract": broken.rule, "rules": broken.sentence, "broken": broken.failed, "rows": broken.keys[:5]}
                for broken in one.findings
            ]
        return rows

    def require(self, stops: bool = True) -> Self:
        """Stop the line here when a rule is broken, unless a person has accepted that."""
        if stops and self.broken_rules:
            raise ContractBroken(self.message)
        return self

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"contracts": [one.as_dict() for one in self.checked], "page": str(self.page)}


def rules_accepted(told: Mapping[str, Any]) -> tuple[str, ...]:
    """The rules that are broken in an outcome as JSON: who went on after it has accepted them."""
    return tuple(broken["rule"] for one in told["contracts"] for broken in one["findings"])


def check_contracts(context: BuildContext, contracts: Sequence[str]) -> Outcome:
    """Check every row of these contracts, with the home's own rules on what they are about, and write the page."""
    checked = [check_contract(context.store, name) for name in contracts]
    if (own := own_contract(context.home)) is not None:  # on the collections that are complete after these contracts
        complete = [name.partition(":")[0] for name in contracts]
        result = check_frames(OWN, own, lambda: own_frames(context.store, own, complete))
        checked += [result] if result.rules else []
    return Outcome(tuple(checked), write_page(checked, context.home / "reports"))


def export_project(context: BuildContext, folder: Path, snapshot: Path | None) -> dict[str, int]:
    """Write every contract as a project of Great Expectations with its rows as Parquet; rules by suite.

    `snapshot` is the folder of the snapshot that serves; None leaves its contract out. Stages that never ran are left
    out too.
    """
    if folder.exists() and any(folder.iterdir()):
        raise HadesError(f"{folder} is not empty; name a new folder")
    read = [
        (one, read_frames(context.store, one.name, snapshot)) for one in CONTRACTS if snapshot or one != CONTRACTS[-1]
    ]
    if (own := own_contract(context.home)) is not None:
        read.append((own, own_frames(context.store, own)))
    frames = {
        f"{contract.name}.{name}": (table, [rule for rule in contract.rules if rule.frame == name])
        for contract, found in read
        for name, table in found.tables.items()
    }
    write_gx_project(folder, frames)
    return {name: len(rules) for name, (_, rules) in frames.items()}


def write_page(checked: Sequence[ContractResult], reports: Path) -> Path:
    """One HTML page over these contracts, the broken ones first, in the folder of reports; it replaces the last one."""
    ordered = sorted(checked, key=lambda one: one.is_green)
    return page.write(
        reports / PAGE,
        "contracts.html",
        "Contracts",
        broken=sum(len(one.findings) for one in checked),
        checked=[(one, contract_of(one, reports.parent)) for one in ordered],
    )
