"""The last result of each contract, kept with a digest of every row it read: equal rows need no second check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hades.build_state import ledger
from hades.ports.store import GraphStore
from hades.stages.contracts.check_contract import ContractResult
from schemas.contracts.all_contracts import contract_named

_TEXTS = ("documents", "doc_chunks")
_CODE = ("files", "funcs", "papers_raw")
_EDGES = ("references", "contains", "imports", "chunk_code_edges")
_GRAPH = ("entities", "relations", "mentions")
# Every collection whose rows the frames of a contract are made of.
READS: Mapping[str, tuple[str, ...]] = {
    "nodes": (*_TEXTS, *_CODE, "entities"),
    "chunks": _TEXTS,
    "embeddings": ("doc_chunks", "entities"),
    "edges": (*_TEXTS, *_CODE, *_GRAPH, *_EDGES),
    "hierarchy": ("entities", "relations", "clusters", "cluster_edges"),
    "weights": (*_GRAPH, "weight_config"),
    "bridges": ("entities", "relations", "clusters", "cluster_edges", "bridge_cache"),
}
_STAGES = (ledger.HIERARCHY, ledger.WEIGHTS, ledger.BRIDGES)
EARLIER = "as it was last checked"
UNCHANGED = "no row has changed since the contract was last checked"


def inputs_digest(store: GraphStore, name: str) -> str | None:
    """A digest of the rows, stages and rules a contract depends on; None where the store cannot tell."""
    reads = READS[name]
    marks = store.marks(reads)
    if len(marks) < len(reads):
        return None
    done = [ledger.complete(store, stage) for stage in _STAGES]
    stages = ["" if one is None else [one.digest, one.generation] for one in done]
    rules = [[rule.id, repr(rule.expectation)] for rule in contract_named(name).rules]
    return ledger.digest_of(sorted(marks.items()), stages, rules)


def check_before(store: GraphStore, name: str, inputs: str | None) -> ContractResult | None:
    """The last result, where it held and was of the same rows."""
    done = ledger.complete(store, _record(name)) if inputs is not None else None
    if done is None or done.digest != inputs:
        return None
    return ContractResult(name, done.report["rules"], (), done.report["rows"], 0.0, (UNCHANGED,))


def last_results(store: GraphStore, names: Iterable[str]) -> list[ContractResult]:
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
    done = ledger.StageCompletion(_record(name), inputs, report={"rules": result.rules, "rows": result.rows})
    with store.bulk(["build_stages"]) as inside:
        ledger.record(inside, done)


def _record(name: str) -> str:
    return f"contract-{name}"
