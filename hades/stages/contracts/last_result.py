"""The last result of each contract, kept with a digest of every row it read: equal rows need no second check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from hades.build_state import ledger
from hades.ports.store import GraphStore, RowStore
from hades.stages.contracts.check_contract import ContractResult
from schemas.contracts.all_contracts import contract_named

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
EARLIER = "as it was last checked"
UNCHANGED = "no row has changed since the contract was last checked"


def inputs_digest(store: RowStore, name: str) -> str | None:
    """A digest of the rows, stages and rules a contract depends on; None where the store cannot tell."""
    reads = READS[name]
    marks = store.marks(list(reads))
    if len(marks) < len(reads):
        return None
    done = [ledger.complete(store, stage) for stage in _STAGES.get(name, ())]
    generations = ["" if one is None else one.generation for one in done]
    rules = [[rule.id, repr(rule.expectation)] for rule in contract_named(name).rules]
    return ledger.digest_of(sorted(marks.items()), generations, rules)


def check_before(store: RowStore, name: str, inputs: str | None) -> ContractResult | None:
    """The last result, where it held and was of the same rows."""
    done = ledger.complete(store, _record(name)) if inputs is not None else None
    if done is None or done.digest != inputs:
        return None
    return ContractResult(name, done.report["rules"], (), done.report["rows"], 0.0, (UNCHANGED,))


@contextmanager
def keep_results(store: RowStore, written: Written) -> Iterator[None]:
    """Around the writes of a stage: a contract that held and reads none of these columns still holds afterwards.

    `written` says of each collection which columns the stage changes of rows that exist; None: it writes whole rows.
    Call it inside the stage's transaction, which names `build_stages`: no other writer comes between the rows before
    and the rows after.
    """
    spared = [name for name in READS if _reads_other_columns(READS[name], written)]
    held = [one for name in spared if (one := check_before(store, name, inputs_digest(store, name))) is not None]
    yield
    for one in held:
        _record_result(store, one.contract, inputs_digest(store, one.contract), one)


def last_results(store: RowStore, names: Iterable[str]) -> list[ContractResult]:
    """What each of these contracts said when it was last checked and held; one never checked is left out."""
    done = [(name, ledger.complete(store, _record(name))) for name in names]
    return [
        ContractResult(name, one.report["rules"], (), one.report["rows"], 0.0, (EARLIER,))
        for name, one in done
        if one is not None
    ]


def note_result(store: GraphStore, name: str, inputs: str | None, result: ContractResult) -> None:
    """Keep a result that held; a broken contract is checked again until it holds."""
    if inputs is None or result.findings:
        return
    with store.bulk(["build_stages"]) as inside:
        _record_result(inside, name, inputs, result)


def _reads_other_columns(reads: Mapping[str, tuple[str, ...]], written: Written) -> bool:
    """Whether a contract reads a collection that is written, and none of the columns."""
    shared = reads.keys() & written.keys()
    columns = [(reads[name], written[name]) for name in shared]
    return bool(shared) and all(new is not None and set(read).isdisjoint(new) for read, new in columns)


def _record_result(store: RowStore, name: str, inputs: str | None, result: ContractResult) -> None:
    if inputs is not None:
        report = {"rules": result.rules, "rows": result.rows}
        ledger.record(store, ledger.StageCompletion(_record(name), inputs, report=report))


def _record(name: str) -> str:
    return f"contract-{name}"
