"""All contracts in the order of the build."""

from __future__ import annotations

from schemas.contracts import bridges, chunks, edges, embeddings, hierarchy, nodes, ranker, snapshot, weights
from schemas.contracts.rule import Contract, Rule

CONTRACTS: tuple[Contract, ...] = (
    nodes.CONTRACT,
    chunks.CONTRACT,
    embeddings.CONTRACT,
    edges.CONTRACT,
    hierarchy.CONTRACT,
    weights.CONTRACT,
    bridges.CONTRACT,
    snapshot.CONTRACT,
)
EXPORTS: tuple[Contract, ...] = (ranker.CONTRACT,)  # of files that are written to be learned from, not of the store
CONTRACT_NAMES: tuple[str, ...] = tuple(contract.name for contract in CONTRACTS)
RULES: tuple[Rule, ...] = tuple(rule for contract in CONTRACTS for rule in contract.rules)


def contract_named(name: str) -> Contract:
    """The contract of this name; raises ValueError when there is none."""
    for contract in (*CONTRACTS, *EXPORTS):
        if contract.name == name:
            return contract
    raise ValueError(f"there is no contract {name!r}; there are {', '.join(CONTRACT_NAMES)}")
