"""Changed rows in the words of people: which documents, passages, entities, relations, topics and
weights, with examples.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from hades.night.stage import Report
from hades.ports.store import RowChange, RowStore
from schemas.ids import split_id
from schemas.record import JsonObject

_CHANGES = ("added", "changed", "removed")
EXAMPLES = 10  # of each kind of change
_EXCERPT = 240  # characters of a value
_CONTEXT = 1  # lines around a changed line
_LINES = 60  # of a changed document
_WEIGHTS = frozenset({"weight", "weight_components", "cost", "learned"})
_FIGURES = frozenset({"embedding", "embedding_model", "metadata"})
Row = dict[str, Any]


@dataclass(frozen=True)
class _Kind:
    """What a collection means to people. A row that differs in `quiet` columns alone says the same
    as before. `first` are the columns by which examples are chosen, the largest first.
    """

    name: str
    collection: str
    shown: tuple[str, ...]
    quiet: frozenset[str] = frozenset()
    first: str = ""


_KINDS = (
    _Kind(
        "documents",
        "documents",
        ("origin", "title", "domains", "created"),
        _FIGURES | {"facts"},
    ),
    _Kind(
        "passages",
        "doc_chunks",
        ("title", "headings", "text"),
        _FIGURES | {"token_signs"},
    ),
    _Kind(
        "entities",
        "entities",
        ("name", "type", "aliases", "summary", "domain"),
        _FIGURES | {"frequency", "deg_out", "cluster_id", "prev_cluster_id", "vector_of", "layer"},
        "frequency",
    ),
    _Kind(
        "relations",
        "relations",
        ("_from", "type", "_to", "label", "evidence_count"),
        _WEIGHTS | {"sim", "strength", "layer_bridge"},
        "evidence_count",
    ),
    _Kind(
        "topics",
        "clusters",
        ("name", "summary", "size", "level"),
        _FIGURES | {"centroid", "centroid_version", "drift", "cluster_params"},
        "size",
    ),
)


def describe_changes(
    rows: Sequence[RowChange],
    old: RowStore,
    new: RowStore,
) -> JsonObject:
    """The changes by collection and column, and by kind with the first examples of each."""
    counts: dict[str, dict[str, int]] = {}
    columns: dict[str, Counter[str]] = defaultdict(Counter)

    for row in rows:
        counts.setdefault(row.collection, dict.fromkeys(_CHANGES, 0))[row.change] += 1
        if row.columns:
            columns[row.collection].update(row.columns)

    kinds = {}
    for kind in _KINDS:
        kinds[kind.name] = _describe_kind(kind, rows, old, new)

    return {
        "collections": counts,
        "columns": {name: dict(count.most_common()) for name, count in columns.items()},
        "kinds": {
            **kinds,
            "weights": _weights(rows, old, new),
        },
        "renamed": _renamed(rows, old, new),
        "texts": _texts(
            kinds["documents"]["examples"]["changed"],
            old,
            new,
        ),
    }


def _describe_kind(
    kind: _Kind,
    rows: Sequence[RowChange],
    old: RowStore,
    new: RowStore,
) -> JsonObject:
    """How many rows of a kind came, went and say something else, with examples; `figures` are
    those that only count or are placed otherwise.
    """
    keys: dict[str, list[str]] = {name: [] for name in (*_CHANGES, "figures")}
    for change in rows:
        if change.collection == kind.collection:
            is_quiet = change.change == "changed" and kind.quiet.issuperset(change.columns)
            keys["figures" if is_quiet else change.change].append(change.key)

    changed = []
    new_rows = _first_rows(kind, keys["changed"], new)
    old_rows = _rows(
        old,
        kind.collection,
        list(new_rows),
        kind.shown,
    )

    for key, row in new_rows.items():
        example: JsonObject = {
            **_shown(kind, row, new),
            "before": {},
            "after": {},
        }
        for name in kind.shown:
            if row[name] != old_rows[key][name]:
                example["before"][name] = _excerpt(old_rows[key][name])
                example["after"][name] = _excerpt(row[name])

        changed.append(example)

    examples = {
        "added": _examples(kind, keys["added"], new),
        "removed": _examples(kind, keys["removed"], old),
        "changed": changed,
    }
    return {
        **{name: len(changes) for name, changes in keys.items()},
        "examples": examples,
    }


def _first_rows(
    kind: _Kind,
    keys: Sequence[str],
    store: RowStore,
) -> dict[str, Row]:
    """The rows that are shown of these: the largest first, else in the order of what they say."""
    order = kind.first or kind.shown[0]

    values = {}
    for key, row in _rows(store, kind.collection, keys, [order]).items():
        values[key] = row[order]

    if kind.first:
        first_keys = sorted(values, key=lambda key: (-values[key], key))[:EXAMPLES]
    else:
        first_keys = sorted(values, key=lambda key: (str(values[key]), key))[:EXAMPLES]

    full = _rows(
        store,
        kind.collection,
        first_keys,
        kind.shown,
    )
    return {key: full[key] for key in first_keys}


def _rows(
    store: RowStore,
    collection: str,
    keys: Sequence[str],
    columns: Iterable[str],
) -> dict[str, Row]:
    """The rows of these keys that are there, by key."""
    if not keys:
        return {}

    rows = store.get(
        collection,
        keys,
        columns=["_key", *columns],
    ).to_pylist()
    return {row["_key"]: row for row in rows}


def _examples(
    kind: _Kind,
    keys: Sequence[str],
    store: RowStore,
) -> list[Row]:
    examples = []
    for row in _first_rows(kind, keys, store).values():
        examples.append(_shown(kind, row, store))

    return examples


def _shown(kind: _Kind, row: Row, store: RowStore) -> Row:
    """An example: its key and a line that names it."""
    return {
        "key": row["_key"],
        "name": _excerpt(_name(kind, row, store)),
    }


def _name(kind: _Kind, row: Row, store: RowStore) -> str:
    if kind.name == "documents":
        return " · ".join(filter(None, [row["origin"], row["title"]]))

    if kind.name == "passages":
        place = " › ".join(filter(None, [row["title"], *row["headings"][-1:]]))
        return f"{place}: {row['text']}"

    if kind.name == "relations":
        names = names_of(store, [row["_from"], row["_to"]])
        return f"{names[row['_from']]} —{row['type']}→ {names[row['_to']]}"

    if kind.name == "topics":
        return f"{row['name']} ({row['size']})"

    return f"{row['name']} ({row['type']})"


def names_of(store: RowStore, ids: Sequence[str]) -> dict[str, str]:
    """The names of entities by their `_id`."""
    keys = {identifier: split_id(identifier)[1] for identifier in ids}
    rows = _rows(
        store,
        "entities",
        sorted(set(keys.values())),
        ("name",),
    )

    names = {}
    for identifier, key in keys.items():
        names[identifier] = rows.get(key, {"name": key})["name"]

    return names


def _excerpt(value: object) -> str:
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))

    text = " ".join(str("" if value is None else value).split())
    if len(text) <= _EXCERPT:
        return text

    return f"{text[: _EXCERPT - 1].rstrip()}…"


def _weights(
    rows: Sequence[RowChange],
    old: RowStore,
    new: RowStore,
) -> JsonObject:
    """How many edges weigh otherwise, and the relations whose weight moved most."""
    moved = [row for row in rows if row.change == "changed" and _WEIGHTS.intersection(row.columns)]
    keys = [row.key for row in moved if row.collection == "relations" and "weight" in row.columns]
    old_rows = _rows(old, "relations", keys, ("weight",))
    new_rows = _rows(
        new,
        "relations",
        keys,
        ("_from", "type", "_to", "weight"),
    )

    distances: dict[str, float] = {}
    for key, row in new_rows.items():
        distances[key] = abs((row["weight"] or 0.0) - (old_rows[key]["weight"] or 0.0))

    examples = []
    for key in sorted(distances, key=lambda key: (-distances[key], key))[:EXAMPLES]:
        row = new_rows[key]
        names = names_of(new, [row["_from"], row["_to"]])
        ends = {
            "from": names[row["_from"]],
            "type": row["type"],
            "to": names[row["_to"]],
        }
        weights = {
            "before": old_rows[key]["weight"],
            "after": row["weight"],
        }
        examples.append(
            {
                "key": key,
                **ends,
                **weights,
            }
        )

    return {
        "changed": len(moved),
        "examples": {"changed": examples},
    }


def _renamed(
    rows: Sequence[RowChange],
    old: RowStore,
    new: RowStore,
) -> list[dict[str, str]]:
    """Documents that went and came back under another name with the same text."""
    keys: dict[str, list[str]] = {name: [] for name in _CHANGES}
    for row in rows:
        if row.collection == "documents":
            keys[row.change].append(row.key)

    removed = _rows(
        old,
        "documents",
        keys["removed"],
        ("origin", "sha256"),
    )
    added = _rows(
        new,
        "documents",
        keys["added"],
        ("origin", "sha256"),
    )
    former_names = {row["sha256"]: row["origin"] for row in removed.values()}

    renamed = []
    for document in added.values():
        if former_name := former_names.get(document["sha256"]):
            renamed.append(
                {
                    "from": former_name,
                    "to": document["origin"],
                }
            )

    return renamed


def _texts(
    examples: Sequence[Report],
    old: RowStore,
    new: RowStore,
) -> list[JsonObject]:
    """The lines of changed documents as they were and will be, side by side."""
    keys = [example["key"] for example in examples]
    old_rows = _rows(old, "documents", keys, ("text",))
    new_rows = _rows(new, "documents", keys, ("origin", "text"))

    texts = []
    for key in keys:
        lines = beside(old_rows[key]["text"], new_rows[key]["text"])
        texts.append(
            {
                "document": new_rows[key]["origin"],
                "lines": lines,
            }
        )

    return texts


def beside(old: str, new: str) -> list[list[str]]:
    """The changed lines of two texts with a line around them: a mark, the old line, the new
    line.
    """
    old_lines = old.splitlines()
    new_lines = new.splitlines()
    pairs: list[list[str]] = []
    matcher = SequenceMatcher(
        None,
        old_lines,
        new_lines,
        autojunk=False,
    )

    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if pairs:
            pairs.append(["gap", "…", "…"])

        for tag, old_start, old_end, new_start, new_end in group:
            mark = "same" if tag == "equal" else "changed"
            sides = old_lines[old_start:old_end], new_lines[new_start:new_end]
            for old_line, new_line in zip_longest(*sides, fillvalue=""):
                pairs.append([mark, old_line, new_line])

    return pairs[:_LINES]
