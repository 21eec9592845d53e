"""Rules of a home's own: expectations.yaml, checked on the rows that builds write; new ones are
tried on snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hades.errors import HadesError, explain_problems
from hades.night.columns import Frames, kind_numbers
from hades.night.context import read_columns
from hades.night.contracts.rule import Contract, Expectation, Rule, Severity, validate
from hades.ports.store import GraphStore
from hades.snapshot.open import open_folder
from hades.snapshot.pointer import root_of, snapshots
from hades.snapshot.view import GraphView
from schemas.catalogue import columns_schema, declared
from schemas.record import JsonObject

OWN = "own"
FILE = "expectations.yaml"  # under HADES_HOME
# After which contract the rows of a collection are complete; own rules on it are checked with that
# contract.
CHECKED_WITH: Mapping[str, str] = {
    **dict.fromkeys(("documents", "papers_raw", "files"), "nodes"),
    "doc_chunks": "embeddings",
    **dict.fromkeys(
        ("funcs", "references", "contains", "imports", "chunk_code_edges"),
        "edges",
    ),
    **dict.fromkeys(("entities", "clusters", "cluster_edges"), "hierarchy"),
    **dict.fromkeys(("relations", "mentions", "weight_config"), "weights"),
    "bridge_cache": "bridges",
}
_RENAMED: Mapping[str, Mapping[str, str]] = {  # what a snapshot calls columns of the catalogue
    "doc_chunks": {
        "document_id": "document",
        "document": "",
        "path": "file_path",
    },
    "funcs": {
        "name": "qualified_name",
        "type": "kind",
        "summary": "docstring",
        "document": "",
    },
    "files": {"name": "path", "document": ""},
}


class OwnRule(BaseModel):
    """One rule as people write it: an expectation of Great Expectations on the rows of a
    collection.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    collection: str
    type: str
    kwargs: JsonObject = {}
    severity: Severity = "stop"
    sentence: str = ""


class _RuleFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    expectations: list[OwnRule]


def own_contract(home: Path) -> Contract | None:
    """The rules of a home; None where it has no file of them."""
    path = home / FILE
    return read_own(path) if path.is_file() else None


def read_own(path: Path) -> Contract:
    """The rules of a file; an unknown collection or column, and two rules of one name, are
    refused.
    """
    try:
        expectations = _RuleFile.model_validate(
            yaml.safe_load(path.read_text(encoding="utf-8"))
        ).expectations
    except ValidationError as error:
        problems = explain_problems(error.errors(), "the file")
        raise HadesError(
            f"{path} does not hold expectations: {problems}; docs/contracts.md shows one"
        ) from None
    except (OSError, yaml.YAMLError) as error:
        raise HadesError(
            f"{path} cannot be read as expectations: {error}; docs/contracts.md shows one"
        ) from None

    rules = tuple(_rule(path, expectation) for expectation in expectations)
    if len({rule.id for rule in rules}) < len(rules):
        raise HadesError(f"{path}: two expectations have one name; rename one of them")

    return Contract(OWN, f"rules of {path.name}", rules)


def _rule(path: Path, own_rule: OwnRule) -> Rule:
    if own_rule.collection not in CHECKED_WITH:
        known = ", ".join(CHECKED_WITH)
        raise HadesError(
            f"{path}: {own_rule.name} is about {own_rule.collection!r}; rules can be about {known}"
        )

    kind = "".join(part[:1].upper() + part[1:] for part in own_rule.type.split("_"))
    expectation = Expectation(kind, own_rule.kwargs)
    has = declared(own_rule.collection).schema.names

    unknown = []
    for column in expectation.columns:
        if column not in has:
            unknown.append(column)

    if unknown:
        raise HadesError(
            f"{path}: {own_rule.collection} has no column {', '.join(unknown)}; it has "
            f"{', '.join(has)}"
        )

    arguments = ", ".join(f"{name}={value}" for name, value in own_rule.kwargs.items())
    sentence = own_rule.sentence or f"{own_rule.type} {arguments}"
    key = f"{OWN}.{own_rule.name}"
    collection = own_rule.collection
    return Rule(
        key,
        collection,
        sentence,
        expectation,
        severity=own_rule.severity,
    )


def own_frames(
    store: GraphStore,
    contract: Contract,
    contracts: Sequence[str] | None = None,
) -> Frames:
    """The collections that rules are about, those that are complete after these contracts; None:
    all of them.
    """
    tables: dict[str, pa.Table] = {}
    with store.reading() as rows:
        for collection, columns in _columns_by_collection(contract).items():
            if contracts is None or CHECKED_WITH[collection] in contracts:
                tables[collection] = read_columns(rows, collection, columns)

    return Frames(tables)


def _columns_by_collection(contract: Contract) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for rule in contract.rules:
        chosen = columns.setdefault(rule.frame, ["_key"])
        chosen += [name for name in rule.expectation.columns if name not in chosen]

    return columns


def try_rules(
    store: GraphStore,
    home: Path,
    path: Path,
    last: int = 10,
) -> list[JsonObject]:
    """A verdict for each rule on the store and on each of the newest snapshots: holds, broken or
    unknown.
    """
    contract = read_own(path)
    verdicts = list(
        _judge(
            "store",
            "",
            contract,
            own_frames(store, contract).tables,
        )
    )

    for entry in [snapshot for snapshot in snapshots(home) if snapshot.problem is None][:last]:
        with closing(open_folder(root_of(home) / entry.snapshot)) as view:
            collections = {rule.frame for rule in contract.rules}
            tables = {}
            for name in collections:
                tables[name] = read_snapshot_rows(view, name)

        verdicts += _judge(
            entry.snapshot,
            entry.created_at or "",
            contract,
            tables,
        )

    return verdicts


def _judge(
    build: str,
    at: str,
    contract: Contract,
    tables: Mapping[str, pa.Table],
) -> Iterator[JsonObject]:
    """The verdict of each rule; unknown where a snapshot does not hold the column."""
    known = []
    for rule in contract.rules:
        if set(tables[rule.frame].column_names).issuperset(rule.expectation.columns):
            known.append(rule)

    findings = validate(Contract(OWN, contract.about, tuple(known)), tables)
    broken = {finding.rule: finding for finding in findings}
    for rule in contract.rules:
        finding = broken.get(rule.id)
        verdict = "holds" if rule in known else "unknown"
        yield {
            "build": build,
            "created_at": at,
            "rule": rule.id,
            "severity": rule.severity,
            "verdict": "broken" if finding else verdict,
            "broken": finding.failed if finding else 0,
            "rows": tables[rule.frame].num_rows,
            "observed": list(finding.observed[:3]) if finding else [],
        }


def read_snapshot_rows(view: GraphView, collection: str) -> pa.Table:
    """The rows of a collection as a snapshot holds them: its columns of the catalogue, in the
    catalogue's types.
    """
    renamed = {
        "id": "_key",
        "source": "_from",
        "target": "_to",
        **_RENAMED.get(collection, {}),
    }

    rows = []
    for facts in _facts_of(view, collection):
        row = {}
        for name, value in asdict(facts).items():
            row[renamed.get(name, name)] = value

        row["_key"] = row["_key"].partition("/")[2]
        rows.append(row)

    has = rows[0] if rows else ("_key",)
    names = [name for name in declared(collection).schema.names if name in has]
    return pa.Table.from_pylist(
        rows,
        schema=columns_schema(collection, names),
    )


def _facts_of(view: GraphView, collection: str) -> Sequence[Any]:
    nodes = view.info.nodes
    edges = view.info.edges
    if collection == "documents":
        chunks = view.passages(kind_numbers(nodes, "doc_chunks"))
        sources = view.sources(sorted({passage.document_id for passage in chunks}))
        return [source for source in sources if source is not None]

    if collection in edges:
        return view.edges(kind_numbers(edges, collection))
    if collection == "doc_chunks":
        return view.passages(kind_numbers(nodes, collection))
    if collection in nodes:
        return view.nodes(kind_numbers(nodes, collection))

    return []
