"""Every contract in the order of the build: checking them, and what a broken one says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self

import pyarrow as pa

from hades.errors import ContractBroken, HadesError
from hades.night.columns import Frames, column, ids, lengths_of, read
from hades.night.context import BuildContext
from hades.night.contracts.bridges import BRIDGES_CONTRACT, bridge_frames
from hades.night.contracts.chunks import CHUNKS_CONTRACT, chunk_frames
from hades.night.contracts.edges import EDGES_CONTRACT, edge_frames
from hades.night.contracts.embeddings import EMBEDDINGS_CONTRACT, vector_frames
from hades.night.contracts.exam import EXAM_CONTRACT, RANKER_CONTRACT, STANDING_CONTRACT
from hades.night.contracts.hierarchy import HIERARCHY_CONTRACT, hierarchy_frames
from hades.night.contracts.nodes import NODES_CONTRACT, node_frames
from hades.night.contracts.own import OWN, own_contract, own_frames
from hades.night.contracts.rule import (
    Contract,
    ContractResult,
    Engine,
    Finding,
    Reference,
    Rule,
    Severity,
    Suites,
    default_engine,
    find_broken_rows,
    validate,
    write_gx_project,
)
from hades.night.contracts.snapshot import SNAPSHOT_CONTRACT, snapshot_frames
from hades.night.contracts.weights import WEIGHTS_CONTRACT, weight_frames
from hades.night.stage import Report
from hades.ports.store import GraphStore, RowStore
from hades.reports import page
from schemas.record import JsonObject

_OF_STORE: tuple[tuple[Contract, Callable[[RowStore], Frames]], ...] = (
    (NODES_CONTRACT, node_frames),
    (CHUNKS_CONTRACT, chunk_frames),
    (EMBEDDINGS_CONTRACT, vector_frames),
    (EDGES_CONTRACT, edge_frames),
    (HIERARCHY_CONTRACT, hierarchy_frames),
    (WEIGHTS_CONTRACT, weight_frames),
    (BRIDGES_CONTRACT, bridge_frames),
)
CONTRACTS: tuple[Contract, ...] = (
    *(contract for contract, _ in _OF_STORE),
    SNAPSHOT_CONTRACT,
)
CONTRACT_NAMES: tuple[str, ...] = tuple(contract.name for contract in CONTRACTS)
RULES: tuple[Rule, ...] = tuple(chain.from_iterable(contract.rules for contract in CONTRACTS))
CHUNK_VECTORS = "embeddings:doc_chunks"  # of a night before its entities have vectors
PAGE = "contracts.html"
_SHOWN = ("contract", "rules", "broken", "rows")
_NAMED_KEYS = 3
_NAMED_CONTRACTS = 3


def contract_named(name: str) -> Contract:
    """The contract of this name; raises ValueError when there is none."""
    others = (EXAM_CONTRACT, RANKER_CONTRACT, STANDING_CONTRACT)
    for contract in (*CONTRACTS, *others):
        if contract.name == name.partition(":")[0]:
            return contract

    raise ValueError(f"there is no contract {name!r}; there are {', '.join(CONTRACT_NAMES)}")


def read_frames(
    store: GraphStore,
    name: str,
    snapshot: Path | None = None,
) -> Frames:
    """The frames of a contract, read from one moment of the store."""
    if name == "snapshot":
        if snapshot is None:
            raise HadesError("checking a snapshot needs its folder; give `snapshot=`")
        return snapshot_frames(store, snapshot)

    readers = {}
    for contract, reader in _OF_STORE:
        readers[contract.name] = reader

    readers[CHUNK_VECTORS] = partial(vector_frames, collections=("doc_chunks",))
    with store.reading() as rows:
        return readers[name](rows)


def check_contract(
    store: GraphStore,
    name: str,
    *,
    snapshot: Path | None = None,
    engine: Engine | None = None,
) -> ContractResult:
    """Check every rule of a contract; nothing is written and nothing is raised for a broken rule.

    `snapshot` is the folder that is about to serve, for the contract of that name. A stage that
    never ran is green with a note.
    """
    return check_frames(
        name,
        contract_named(name),
        lambda: read_frames(store, name, snapshot),
        engine,
    )


def check_frames(
    name: str,
    contract: Contract,
    read: Callable[[], Frames],
    engine: Engine | None = None,
) -> ContractResult:
    """Check every rule of a contract on frames that are read now, so that reading counts in the
    seconds.
    """
    began = time.perf_counter()
    frames = read()
    engine = engine or default_engine()
    rules = tuple(rule.id for rule in contract.rules if rule.frame in frames.tables)
    notes = list(frames.notes)
    findings: dict[Severity, list[Finding]] = {"stop": [], "warn": []}

    for finding in validate(contract, frames.tables, engine):
        findings[finding.severity].append(finding)
        if finding.severity == "warn":
            notes.append(f"warning: {_describe_finding(finding)}")

    return ContractResult(
        contract=name,
        rules=len(rules),
        findings=tuple(findings["stop"]),
        rows=frames.rows,
        seconds=round(time.perf_counter() - began, 3),
        notes=tuple(notes),
        engine=engine,
        warnings=tuple(findings["warn"]),
        rule_ids=rules,
    )


def find_broken_keys(store: GraphStore, name: str) -> dict[str, list[str]]:
    """The keys of all rows that break a rule of a contract, by frame."""
    contract = contract_named(name)
    tables = read_frames(store, name).tables
    broken: dict[str, set[str]] = {}
    frames = {rule.id: rule.frame for rule in contract.rules}

    for rule, (positions, _) in find_broken_rows(contract, tables).items():
        if positions:
            keys = tables[frames[rule]].column("_key").take(positions).to_pylist()
            broken.setdefault(frames[rule], set()).update(keys)

    return {frame: sorted(keys) for frame, keys in broken.items()}


def require_contracts(checked: Sequence[ContractResult]) -> None:
    """Stop here when a rule is broken."""
    if any(result.findings for result in checked):
        raise ContractBroken(describe_broken(checked))


def describe_broken(checked: Sequence[ContractResult]) -> str:
    """Which rules are broken by which rows, and what to do; one line a rule."""
    lines: list[str] = []
    for finding in chain.from_iterable(result.findings for result in checked):
        advice = f"; {finding.repair}" if finding.repair else ""
        lines.append(f"{_describe_finding(finding)}{advice}")

    if not lines:
        return "every contract holds"

    if len(lines) > 1:
        count = f"{len(lines)} contracts are"
    else:
        count = "1 contract is"

    return "\n".join([f"{count} broken; what serves was left alone", *lines])


def _describe_finding(finding: Finding) -> str:
    """A broken rule, and the first of the rows that break it."""
    broken = f"{finding.rule}: {finding.sentence}, but"
    if not finding.keys:  # a rule of the whole and not of its rows
        return f"{broken} it has not: {', '.join(finding.observed)}"

    keys = ", ".join(finding.keys[:_NAMED_KEYS])
    more = ", ..." if finding.failed > _NAMED_KEYS else ""
    rows = f"{finding.failed} of {finding.rows} rows of {finding.frame}"
    return f"{broken} {rows} break it ({keys}{more})"


def contract_of(result: ContractResult, home: Path) -> Contract:
    """The contract that was checked; without rules where it was the home's own and is gone."""
    if result.contract == OWN:
        checked_contract = own_contract(home)
    else:
        checked_contract = contract_named(result.contract)

    return checked_contract or Contract(OWN, "rules that are gone", ())


@dataclass(frozen=True)
class Outcome:
    """The results of several contracts, and the page that shows them."""

    checked: tuple[ContractResult, ...]
    page: Path

    @property
    def broken_rules(self) -> list[str]:
        """Ids of the rules that rows broke; none where the line may go on."""
        findings = chain.from_iterable(result.findings for result in self.checked)
        return [finding.rule for finding in findings]

    @property
    def alerts(self) -> list[str]:
        """What to alert about: the broken rules in one line, or nothing."""
        if self.broken_rules:
            return [",".join(self.broken_rules)]
        return []

    @property
    def message(self) -> str:
        """Which rules, which rows, where to read more."""
        return f"{describe_broken(self.checked)}; see {self.page}"

    def rows_to_show(self, is_part: bool) -> list[JsonObject]:
        """A row a contract, and one a broken rule; of a part of a night only where a rule is
        broken: its page has the rest.
        """
        if is_part and not self.broken_rules:
            return []

        rows: list[JsonObject] = []
        for result in self.checked:
            figures = result.contract, result.rules, len(result.findings), result.rows
            rows.append(dict(zip(_SHOWN, figures, strict=True)))
            for broken in result.findings:
                facts = broken.rule, broken.sentence, broken.failed, broken.keys[:5]
                rows.append(dict(zip(_SHOWN, facts, strict=True)))

        return rows

    def require(self, stops: bool = True) -> Self:
        """Stop the line here when a rule is broken, unless a person has accepted that."""
        if stops and self.broken_rules:
            raise ContractBroken(self.message)
        return self

    def as_dict(self) -> JsonObject:
        """As JSON."""
        return {
            "contracts": [result.as_dict() for result in self.checked],
            "page": str(self.page),
        }


def describe_checked(report: Report) -> str:
    """One line of a check that was passed or accepted: how many rules hold, of how many rows."""
    checked = report["contracts"]
    rules = sum(contract["rules"] for contract in checked)
    broken = rules_accepted(report)
    rows = sum(contract["rows"] for contract in checked)
    engines = ", ".join(sorted({str(contract["engine"]) for contract in checked}))
    line = f"{rules - len(broken)} of {rules} rules hold, {rows:,} rows checked by {engines}"

    if broken:
        return f"{line}; broken and accepted: {', '.join(broken)}"

    return line


def contracts_in_words(names: Sequence[str]) -> str:
    """Names of contracts as people list them; how many there are where that would be long."""
    if len(names) > _NAMED_CONTRACTS:
        return f"{len(names)} contracts"

    words = []
    for name in names:
        words.append(name.replace(":", " of ").replace("_", " "))

    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def rules_accepted(outcome: Report) -> tuple[str, ...]:
    """The rules that are broken in an outcome as JSON: who went on after it has accepted them."""
    findings = chain.from_iterable(result["findings"] for result in outcome["contracts"])
    return tuple(finding["rule"] for finding in findings)


def check_contracts(context: BuildContext, contracts: Sequence[str]) -> Outcome:
    """Check every row of these contracts, with the home's own rules on what they are about, and
    write the page. Own rules may need Great Expectations, whatever engine the context names.
    """
    checked = []
    for name in contracts:
        checked.append(
            check_contract(
                context.store,
                name,
                engine=context.engine,
            )
        )

    home_contract = own_contract(context.home)
    if home_contract is not None:  # on the collections that are complete after these contracts
        complete = [name.partition(":")[0] for name in contracts]
        result = check_frames(
            OWN,
            home_contract,
            lambda: own_frames(context.store, home_contract, complete),
        )
        checked += [result] if result.rules else []

    return Outcome(tuple(checked), write_page(checked, context.home / "reports"))


def export_project(
    context: BuildContext,
    folder: Path,
    snapshot: Path | None,
) -> dict[str, int]:
    """Write every contract as a project of Great Expectations with its rows as Parquet; rules by
    suite.

    `snapshot` is the folder of the snapshot that serves; None leaves its contract out. Stages that
    never ran are left out too.
    """
    if folder.exists() and any(folder.iterdir()):
        raise HadesError(f"{folder} is not empty; name a new folder")

    suites: dict[str, tuple[pa.Table, Sequence[Rule]]] = {}
    for contract in CONTRACTS if snapshot else CONTRACTS[:-1]:
        suites |= _suites_of(contract, read_frames(context.store, contract.name, snapshot))

    home_contract = own_contract(context.home)
    if home_contract is not None:
        suites |= _suites_of(home_contract, own_frames(context.store, home_contract))

    write_gx_project(
        folder,
        suites,
        REFERENCES,
        read_keys(context.store),
    )
    return {name: len(rules) for name, (_, rules) in suites.items()}


def _suites_of(contract: Contract, frames: Frames) -> Suites:
    """The rows of each frame of a contract with its rules."""
    suites = {}
    for name, table in frames.tables.items():
        rules = [rule for rule in contract.rules if rule.frame == name]
        suites[f"{contract.name}.{name}"] = (table, rules)

    return suites


_DOCUMENT = {"document": ("documents",)}
# By frame of the exported project, what it can compare with the ids of other collections itself.
REFERENCES: Mapping[str, Sequence[Reference]] = {
    "nodes.papers_raw": [Reference("paper_document_exists", _DOCUMENT)],
    "nodes.files": [Reference("file_document_exists", _DOCUMENT)],
    "nodes.funcs": [
        Reference("func_document_exists", _DOCUMENT),
        Reference(
            "func_span_inside_document",
            _DOCUMENT,
            "span",
        ),
    ],
    "chunks.doc_chunks": [
        Reference("document_exists", _DOCUMENT),
        Reference("span_inside_document", _DOCUMENT, "span"),
    ],
    "edges.relations": [
        Reference(
            "ends_exist",
            {
                "_from": ("entities",),
                "_to": ("entities",),
            },
        ),
        Reference("provenance_document_exists", _DOCUMENT),
        Reference("span_inside_document", _DOCUMENT, "span"),
    ],
    "edges.mentions": [
        Reference(
            "mention_ends_exist",
            {
                "_from": ("doc_chunks",),
                "_to": ("entities",),
            },
        ),
    ],
    "hierarchy.cluster_edges": [
        Reference(
            "ends_exist",
            {
                "_from": ("entities", "clusters"),
                "_to": ("clusters",),
            },
        ),
    ],
}


def read_keys(store: GraphStore) -> dict[str, pa.Table]:
    """The ids of the collections that references lead to, and the length of each document."""
    keys = {}
    with store.reading() as rows:
        for name in ("entities", "doc_chunks", "clusters"):
            keys[name] = pa.table({"id": ids(name, column(read(rows, name), "_key"))})

        documents = ids("documents", column(read(rows, "documents"), "_key"))
        lengths = lengths_of(rows, "documents", documents)
        keys["documents"] = pa.table({"id": documents, "length": lengths})

    return keys


def write_page(checked: Sequence[ContractResult], reports: Path) -> Path:
    """One HTML page over these contracts, the broken ones first, in the folder of reports; it
    replaces the last one.
    """
    ordered = sorted(checked, key=lambda result: result.is_green)
    return page.write(
        reports / PAGE,
        "contracts.html",
        "Contracts",
        broken=sum(len(result.findings) for result in checked),
        checked=[(result, contract_of(result, reports.parent)) for result in ordered],
    )
