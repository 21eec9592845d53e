"""The list; check one or several; last results."""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from hades import build_state
from hades.build.context import BuildContext
from hades.build.contracts import bridges, chunks, edges, nodes, outputs, topics, weights
from hades.build.contracts import chunks as embeddings
from hades.build.contracts.bridges import bridge_frames
from hades.build.contracts.chunks import chunk_frames, vector_frames
from hades.build.contracts.columns import Frames, Marks, Source
from hades.build.contracts.edges import edge_frames
from hades.build.contracts.nodes import node_frames
from hades.build.contracts.outputs import snapshot_frames
from hades.build.contracts.rule import Contract, Engine, Finding, Rule, find_broken_rows, is_about_table, validate
from hades.build.contracts.topics import hierarchy_frames
from hades.build.contracts.weights import CONFIG, weight_frames
from hades.errors import ContractBroken, HadesError
from hades.ports.services import utc_now
from hades.ports.store import GraphStore, RowStore
from hades.reports.build_page import ContractSection, Hit, write_contract_page
from schemas.ids import iso

# All contracts in the order of the build.


CONTRACTS: tuple[Contract, ...] = (
    nodes.CONTRACT,
    chunks.CHUNKS_CONTRACT,
    embeddings.EMBEDDINGS_CONTRACT,
    edges.CONTRACT,
    topics.CONTRACT,
    weights.CONTRACT,
    bridges.CONTRACT,
    outputs.SNAPSHOT_CONTRACT,
)
EXPORTS: tuple[Contract, ...] = (
    outputs.RANKER_CONTRACT,
)  # of files that are written to be learned from, not of the store
CONTRACT_NAMES: tuple[str, ...] = tuple(contract.name for contract in CONTRACTS)
RULES: tuple[Rule, ...] = tuple(rule for contract in CONTRACTS for rule in contract.rules)


def contract_named(name: str) -> Contract:
    """The contract of this name; raises ValueError when there is none."""
    for contract in (*CONTRACTS, *EXPORTS):
        if contract.name == name:
            return contract
    raise ValueError(f"there is no contract {name!r}; there are {', '.join(CONTRACT_NAMES)}")


# Which frames each contract's rules read.


_BY_CONTRACT: Mapping[str, Callable[[Source], Frames]] = {
    "nodes": node_frames,
    "chunks": chunk_frames,
    "embeddings": vector_frames,
    "edges": edge_frames,
    "hierarchy": hierarchy_frames,
    "weights": weight_frames,
}


def frames_of(
    store: GraphStore, contract: str, *, snapshot: Path | None, generation: str | None, known: Marks | None = None
) -> Frames:
    """The frames of a contract, read from the store now; without rows that are `known` to hold."""
    if contract == "snapshot":
        if snapshot is None:
            raise HadesError("checking a snapshot needs its folder; give `snapshot=`")
        return snapshot_frames(store, snapshot)
    with store.reading() as rows:
        source = Source(rows, known or {})
        return bridge_frames(source, generation) if contract == "bridges" else _BY_CONTRACT[contract](source)


# One contract: its frames are read, its rules evaluated, and a broken rule is reported with its repair.


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
    found = frames_of(store, name, snapshot=snapshot, generation=generation, known=known)
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
    found = frames_of(store, name, snapshot=None, generation=None)
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


# The last result of each contract, kept with the marks of all rows it read: equal rows need no second check.


Written = Mapping[str, tuple[str, ...] | None]  # columns by collection; None: whole rows
_EDGES = ("references", "contains", "imports", "chunk_code_edges")
_CHUNK = ("document", "text", "span", "chunk_index", "kind", "headings", "title", "token_count", "sha256")
_TIMES = ("valid_from", "valid_until", "recorded_at", "retracted_at")
# Every column of every collection that the frames of a contract are made of; `_key` is always read.
READS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "nodes": {
        "documents": ("origin", "source", "sha256", "text"),
        "entities": ("name", "name_lower", "type", "layer"),
        "papers_raw": ("document", "id"),
        "files": ("document", "path", "sha256"),
        "funcs": ("document", "span"),
    },
    "chunks": {"documents": ("text",), "doc_chunks": _CHUNK},
    "embeddings": {
        "doc_chunks": ("embedding", "embedding_model"),
        "entities": ("embedding", "embedding_model", "vector_of"),
    },
    "edges": {
        "documents": ("text",),
        "doc_chunks": ("text",),
        "files": (),
        "funcs": (),
        "papers_raw": (),
        "entities": ("type", "deg_out"),
        "relations": ("_from", "_to", "type", "provenance", "evidence_count", "strength", *_TIMES),
        "mentions": ("_from", "_to", "count", "positions"),
        **dict.fromkeys(_EDGES, ("_from", "_to")),
    },
    "hierarchy": {
        "entities": ("cluster_id",),
        "clusters": ("level", "size", "parent", "centroid"),
        "cluster_edges": ("_from", "_to", "type"),
    },
    "weights": {
        "relations": ("type", "weight", "weight_components", "learned", "cost"),
        "mentions": ("weight",),
        "weight_config": ("relation_type", "type_prior", "tau_days", "relation_boost", "coefficients"),
    },
    "bridges": {
        "entities": ("cluster_id",),
        "clusters": ("level",),
        "relations": ("_from", "_to", "type", "cost", "layer_bridge", "valid_until", "retracted_at"),
        "bridge_cache": ("from_cluster", "to_cluster", "nodes", "edges", "cost", "generation", "created", "expires"),
    },
}
_STAGES = {"bridges": (build_state.WEIGHTS,)}  # stages whose generation a contract compares
_MARK_DIGITS = 16
_CHECKS = 1  # raise it with any change of what a frame holds: every row is then checked again
WHOLE_EVERY = timedelta(days=7)
EARLIER = "as it was last checked"
UNCHANGED = "no row has changed since the contract was last checked"


@dataclass(frozen=True)
class Inputs:
    """What a contract depends on: one digest of it all, the marks of the rows, and a digest of what is no row.

    The latter are the rules, and the values by which the contract computes every row again.
    """

    digest: str
    marks: Marks
    basis: str


def read_inputs(store: RowStore, name: str, seen: dict[str, list[str]] | None = None) -> Inputs | None:
    """What a contract depends on as it is now; None where the store cannot tell.

    `seen` has the marks of collections that were read a moment ago, and gets the others.
    """
    reads, marked = READS[name], {} if seen is None else seen
    if not marked and not store.marks(list(reads)[:1]):
        return None
    for one in reads:
        if one not in marked:
            marked[one] = [part.mark for part in store.scan_marked(one, columns=())]
    parts = {one: marked[one] for one in reads}
    done = [build_state.complete(store, stage) for stage in _STAGES.get(name, ())]
    generations = ["" if one is None else one.generation for one in done]
    rules = [[rule.id, repr(rule.expectation)] for rule in contract_named(name).rules]
    config = Source(store).read("weight_config", *CONFIG).to_pylist() if name == "weights" else []
    basis = build_state.digest_of(_CHECKS, rules, config)
    marks = {one: frozenset(found) for one, found in parts.items()}
    return Inputs(build_state.digest_of(sorted(parts.items()), generations, basis), marks, basis)


def check_before(store: RowStore, name: str, inputs: Inputs | None) -> ContractResult | None:
    """The last result, where it held and was of the same rows."""
    done = build_state.complete(store, _record(name)) if inputs is not None else None
    if inputs is None or done is None or done.digest != inputs.digest:
        return None
    return ContractResult(name, done.report["rules"], (), 0, 0.0, (UNCHANGED,), done.report["rows"])


def find_known(store: RowStore, name: str, inputs: Inputs | None) -> Marks:
    """The marks of rows that held when the contract was last checked by the same rules; none where it was not.

    Of a collection that mostly changed none either: reading it once costs less than reading keys and then rows.
    """
    done = build_state.complete(store, _record(name)) if inputs is not None else None
    if inputs is None or done is None or done.report.get("basis") != inputs.basis:
        return {}
    known = {one: _unpack(packed) & inputs.marks.get(one, frozenset()) for one, packed in done.report["marks"].items()}
    return {one: held for one, held in known.items() if held and 2 * len(held) > len(inputs.marks[one])}


def is_whole_due(store: RowStore, name: str, now: datetime) -> bool:
    """Whether the last check of every row was a week ago, or there was none."""
    done = build_state.complete(store, _record(name))
    told = done.report.get("whole_at") if done is not None else None
    return told is None or now - datetime.fromisoformat(told) >= WHOLE_EVERY


@contextmanager
def keep_results(store: RowStore, written: Written) -> Iterator[None]:
    """Around the writes of a stage: a contract that held and reads none of these columns still holds afterwards.

    `written` says of each collection which columns the stage changes of rows that exist; None: it writes whole rows.
    Call it inside the stage's transaction, which names `build_stages`: no other writer comes between the rows before
    and the rows after.
    """
    spared = [name for name in READS if _reads_other_columns(READS[name], written)]
    seen: dict[str, list[str]] = {}
    held = [name for name in spared if check_before(store, name, read_inputs(store, name, seen)) is not None]
    yield
    seen = {one: marks for one, marks in seen.items() if one not in written}
    for name in held:
        done, inputs = build_state.complete(store, _record(name)), read_inputs(store, name, seen)
        if done is not None and inputs is not None:
            report = {**done.report, "marks": _pack_all(inputs.marks)}
            build_state.record(store, replace(done, digest=inputs.digest, report=report))


def last_results(store: RowStore, names: Iterable[str]) -> list[ContractResult]:
    """What each of these contracts said when it was last checked and held; one never checked is left out."""
    done = [(name, build_state.complete(store, _record(name))) for name in names]
    return [
        ContractResult(name, one.report["rules"], (), 0, 0.0, (EARLIER,), one.report["rows"])
        for name, one in done
        if one is not None
    ]


def note_result(
    store: RowStore, name: str, inputs: Inputs | None, result: ContractResult, whole_at: datetime | None = None
) -> None:
    """Keep a result that held; a broken contract is checked again until it holds. Inside a transaction, or alone.

    `whole_at` is the moment of a check of every row; without one that of the last result stays.
    """
    if inputs is None or result.findings:
        return
    before = build_state.complete(store, _record(name))
    report = {
        "rules": result.rules,
        "rows": result.rows + result.carried,
        "basis": inputs.basis,
        "marks": _pack_all(inputs.marks),
        "whole_at": iso(whole_at) if whole_at else before.report.get("whole_at") if before else None,
    }
    build_state.record(store, build_state.StageCompletion(_record(name), inputs.digest, report=report))


def _reads_other_columns(reads: Mapping[str, tuple[str, ...]], written: Written) -> bool:
    """Whether a contract reads a collection that is written, and none of the columns."""
    shared = reads.keys() & written.keys()
    columns = [(reads[name], written[name]) for name in shared]
    return bool(shared) and all(new is not None and set(read).isdisjoint(new) for read, new in columns)


def _pack_all(marks: Marks) -> dict[str, str]:
    """Marks as short texts; each is a run of hexadecimal digits."""
    return {one: b64encode(b"".join(map(bytes.fromhex, sorted(found)))).decode() for one, found in marks.items()}


def _unpack(packed: str) -> frozenset[str]:
    digits = b64decode(packed).hex()
    return frozenset(digits[place : place + _MARK_DIGITS] for place in range(0, len(digits), _MARK_DIGITS))


def _record(name: str) -> str:
    return f"contract-{name}"


# Several contracts at once: one page, and one message for the person who is called.


@dataclass(frozen=True)
class Outcome:
    """The results of several contracts."""

    checked: tuple[ContractResult, ...]
    page: Path

    @property
    def broken_rules(self) -> list[str]:
        """Ids of the rules that rows broke."""
        return [finding.rule for one in self.checked for finding in one.findings]

    @property
    def is_broken(self) -> bool:
        """Whether the line must stop."""
        return bool(self.broken_rules)

    @property
    def alerts(self) -> list[str]:
        """What to alert about: the broken rules in one line, or nothing."""
        return [",".join(self.broken_rules)] if self.is_broken else []

    @property
    def message(self) -> str:
        """Which rules, which rows, where to read more."""
        return f"{describe_broken(self.checked)}; see {self.page}"

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row a contract, and one a broken rule."""
        rows = []
        for one in self.checked:
            counts = {"rules": one.rules, "broken": len(one.findings), "rows": one.rows, "carried": one.carried}
            rows.append({"contract": one.contract, **counts})
            rows += [
                {
                    "contract": finding.rule,
                    "rules": finding.sentence,
                    "broken": finding.failed,
                    "rows": finding.keys[:5],
                    "carried": "",
                }
                for finding in one.findings
            ]
        return rows

    def require(self) -> Self:
        """Stop the line here when a rule is broken."""
        if self.is_broken:
            raise ContractBroken(self.message)
        return self

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"contracts": [one.as_dict() for one in self.checked], "page": str(self.page)}


def check_contracts(
    context: BuildContext, contracts: Sequence[str], *, full: bool = False, now: datetime | None = None
) -> Outcome:
    """Check these contracts of the store and write the page, which also shows the last result of the others.

    A contract that held is checked again for rows that changed since, for rows that refer to them, and for what must
    hold of a collection as a whole; for every row once a week. `full` checks every rule of every row with Great
    Expectations, whatever was checked before.
    """
    moment = now or utc_now()
    seen: dict[str, list[str]] = {}  # marks, read before any row: what another writer changes meanwhile is not noted
    inputs = {name: read_inputs(context.store, name, seen) for name in contracts}
    whole = {name for name in contracts if full or is_whole_due(context.store, name, moment)}
    checked = tuple(_check(context.store, name, inputs[name], name in whole, full=full) for name in contracts)
    due = [one for one in checked if one.notes != (UNCHANGED,)]
    with context.store.bulk(["build_stages"]) if due else nullcontext(context.store) as inside:
        for one in due:
            note_result(inside, one.contract, inputs[one.contract], one, None if one.carried else moment)
    others = last_results(context.store, (name for name in READS if name not in contracts))
    return Outcome(checked, write_page((*checked, *others), context.home / "reports"))


def _check(store: GraphStore, name: str, inputs: Inputs | None, is_whole: bool, *, full: bool) -> ContractResult:
    held = None if is_whole else check_before(store, name, inputs)
    if held is not None:
        return held
    known = {} if is_whole else find_known(store, name, inputs)
    return check_contract(store, name, engine="great_expectations" if full else "arrow", known=known)
