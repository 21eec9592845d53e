"""The last result of each contract, kept with the marks of all rows it read: equal rows need no second check."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hades.build_state import ledger
from hades.ports.store import RowStore
from hades.stages.contracts.check_contract import ContractResult
from hades.stages.contracts.source import Marks, Source
from hades.stages.contracts.weights import CONFIG
from schemas.contracts.all_contracts import contract_named
from schemas.intervals import iso

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
_STAGES = {"bridges": (ledger.WEIGHTS,)}  # stages whose generation a contract compares
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
    done = [ledger.complete(store, stage) for stage in _STAGES.get(name, ())]
    generations = ["" if one is None else one.generation for one in done]
    rules = [[rule.id, repr(rule.expectation)] for rule in contract_named(name).rules]
    config = Source(store).read("weight_config", *CONFIG).to_pylist() if name == "weights" else []
    basis = ledger.digest_of(_CHECKS, rules, config)
    marks = {one: frozenset(found) for one, found in parts.items()}
    return Inputs(ledger.digest_of(sorted(parts.items()), generations, basis), marks, basis)


def check_before(store: RowStore, name: str, inputs: Inputs | None) -> ContractResult | None:
    """The last result, where it held and was of the same rows."""
    done = ledger.complete(store, _record(name)) if inputs is not None else None
    if inputs is None or done is None or done.digest != inputs.digest:
        return None
    return ContractResult(name, done.report["rules"], (), 0, 0.0, (UNCHANGED,), done.report["rows"])


def find_known(store: RowStore, name: str, inputs: Inputs | None) -> Marks:
    """The marks of rows that held when the contract was last checked by the same rules; none where it was not.

    Of a collection that mostly changed none either: reading it once costs less than reading keys and then rows.
    """
    done = ledger.complete(store, _record(name)) if inputs is not None else None
    if inputs is None or done is None or done.report.get("basis") != inputs.basis:
        return {}
    known = {one: _unpack(packed) & inputs.marks.get(one, frozenset()) for one, packed in done.report["marks"].items()}
    return {one: held for one, held in known.items() if held and 2 * len(held) > len(inputs.marks[one])}


def is_whole_due(store: RowStore, name: str, now: datetime) -> bool:
    """Whether the last check of every row was a week ago, or there was none."""
    done = ledger.complete(store, _record(name))
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
        done, inputs = ledger.complete(store, _record(name)), read_inputs(store, name, seen)
        if done is not None and inputs is not None:
            report = {**done.report, "marks": _pack_all(inputs.marks)}
            ledger.record(store, replace(done, digest=inputs.digest, report=report))


def last_results(store: RowStore, names: Iterable[str]) -> list[ContractResult]:
    """What each of these contracts said when it was last checked and held; one never checked is left out."""
    done = [(name, ledger.complete(store, _record(name))) for name in names]
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
    before = ledger.complete(store, _record(name))
    report = {
        "rules": result.rules,
        "rows": result.rows + result.carried,
        "basis": inputs.basis,
        "marks": _pack_all(inputs.marks),
        "whole_at": iso(whole_at) if whole_at else before.report.get("whole_at") if before else None,
    }
    ledger.record(store, ledger.StageCompletion(_record(name), inputs.digest, report=report))


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
