"""Undo of an act; erasing, and the proof of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.memory.history import states
from hades.memory.history.edges import beliefs_of, edges_at, meaning_of, supersede
from hades.memory.history.facts import CONFLICT, restore_conflict
from hades.memory.history.rows import (
    EDGES,
    LATEST,
    STATES,
    TRACES,
    MemoryRefused,
    UnknownMemory,
    collection_of,
    fetch,
    is_state_key,
    put,
    scan,
    state_id,
    topic_key,
    topic_of_key,
    version_keys,
)
from hades.memory.history.states import Act
from hades.ports.store import GraphStore, RowStore, Term, scan_rows
from hades.text.sentences import sentences_of
from schemas.catalogue import COLLECTIONS as CATALOGUE
from schemas.ids import content_key, sha256_text
from schemas.memory import MemoryAudit, MemoryEdge, MemoryRelation, MemoryState
from schemas.record import JsonObject, Keyed, canonical_json

Needles = Sequence[str]  # words to look for
SHORTEST = 4  # characters; a shorter text stands in too many others
ERASED = "[erased]"
_CHUNK = 8 * 1024 * 1024
_MODELS = "cache/models"  # exported models, never text of a user
_MASKED = ("logs/", "reports/", "cache/")  # files whose words are overwritten in place
_QUOTING: Mapping[type[Keyed], Sequence[str]] = {
    MemoryEdge: ("description", "metadata"),
    MemoryAudit: ("why", "detail"),
    MemoryState: ("metadata",),
}
_COMMANDS = {
    STATES: "hades memory erase {key}",
    "documents": "hades forget {key}",
    "query_logs": "hades forget --query {key}",
    "standing_questions": "hades standing remove {key}",
    "entity_edits": "hades entity undo {key}",
}
# What removes rows that follow from documents, where no document holds the words any more.
_REBUILD = "hades run nightly -p mode=full"
_COMPACT = "close other processes that use the store, then: hades memory compact"


def needles_of(
    texts: Sequence[str],
    surviving: Sequence[str],
    names: Sequence[str],
) -> Needles:
    """The lines and sentences of erased texts that no surviving text holds too, and the names;
    longest first.

    A hit of one counts only where no letter or digit stands on either side of it.
    """
    needles = set(names)
    for sentence in set(chain.from_iterable(map(sentences_of, texts))):
        is_text = any(map(str.isalnum, sentence))
        if is_text and not any(map(_word_pattern(sentence).search, surviving)):
            needles.add(sentence)

    long_enough = [needle for needle in needles if len(needle) >= SHORTEST]
    return sorted(long_enough, key=lambda needle: (-len(needle), needle))


def redact_rows(rows: RowStore, needles: Needles) -> int:
    """Replace the needles in reasons, descriptions and metadata of what stays; how many rows
    changed.
    """
    changed = 0
    for record, columns in _QUOTING.items():
        keys = _rows_with(
            rows,
            collection_of(record),
            columns,
            needles,
        )
        quoting = fetch(rows, record, keys).values()
        put(rows, [_redact_record(quoted, columns, needles) for quoted in quoting])
        changed += len(quoting)

    return changed


def find_in_rows(store: RowStore, needles: Needles) -> dict[str, list[str]]:
    """Keys of the rows of every collection that still hold a needle."""
    keys_by_collection: dict[str, list[str]] = {}
    for collection in CATALOGUE:
        texts = []
        for field in collection.schema:
            if pa.types.is_string(field.type):
                texts.append(field.name)

        texts.remove("_key")
        if keys := _rows_with(store, collection.name, texts, needles):
            keys_by_collection[collection.name] = keys

    return keys_by_collection


def find_in_files(home: Path, needles: Needles) -> dict[str, list[tuple[int, int]]]:
    """Files under a home that hold a needle, by their path in it, and where they do; every byte is
    read.
    """
    if not needles:
        return {}

    forms = [*_written_forms(needles), *(quote(needle, safe="") for needle in needles)]
    patterns = {}
    for form in forms:
        patterns[form.encode()] = re.compile(_word_pattern(form).pattern.encode())

    spans_by_name = {}
    for path in sorted(home.rglob("*"), key=Path.as_posix):
        name = path.relative_to(home).as_posix()
        if not path.is_file() or path.is_symlink() or name.startswith(_MODELS):
            continue
        if spans := list(_find_spans(path, patterns)):
            spans_by_name[name] = spans

    return spans_by_name


def mask_files(home: Path, needles: Needles) -> list[str]:
    """Overwrite needles with stars in logs, reports and cached answers; the files that changed."""
    masked = []
    for name, spans in find_in_files(home, needles).items():
        if not name.startswith(_MASKED):
            continue

        masked.append(name)
        with (home / name).open("r+b") as file:
            for start, end in spans:
                file.seek(start)
                file.write(b"*" * (end - start))

    return masked


def _find_spans(
    path: Path,
    patterns: Mapping[bytes, re.Pattern[bytes]],
) -> Iterator[tuple[int, int]]:
    overlap = max(len(pattern.pattern) for pattern in patterns.values())
    with path.open("rb") as file:
        tail = b""
        start = 0
        while chunk := file.read(_CHUNK):
            window = tail + chunk
            for form, pattern in patterns.items():
                if form in window:  # looking for plain bytes is far quicker
                    for hit in pattern.finditer(window):
                        yield start + hit.start(), start + hit.end()

            tail = window[-overlap:]
            start += len(window) - len(tail)


def _word_pattern(needle: str) -> re.Pattern[str]:
    """The needle as whole words; behind its full stop a file may go on with another text."""
    end = "(?![0-9A-Za-z])" if needle[-1].isalnum() else ""
    return re.compile(rf"(?<![0-9A-Za-z]){re.escape(needle)}{end}")


def _written_forms(needles: Iterable[str]) -> dict[str, None]:
    """The needles as they stand in texts and in JSON."""
    return dict.fromkeys(chain.from_iterable((needle, _in_json(needle)) for needle in needles))


def _in_json(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _rows_with(
    store: RowStore,
    collection: str,
    columns: Sequence[str],
    needles: Needles,
) -> list[str]:
    """Keys of the rows that hold a needle in one of the columns."""
    patterns = []
    for form in _written_forms(needles):
        patterns.append(rf"(?:^|[^0-9A-Za-z]){re.escape(form)}(?:$|[^0-9A-Za-z])")

    keys: list[str] = []
    for batch in store.scan(collection, columns=columns) if patterns and columns else ():
        has_needle = pa.array([False] * batch.num_rows)
        for column, pattern in product(columns, patterns):
            matches = pc.match_substring_regex(batch.column(column), pattern)
            has_needle = pc.or_(has_needle, pc.fill_null(matches, False))

        keys += batch.column("_key").filter(has_needle).to_pylist()

    return keys


def _redact_record(
    record: Any,
    columns: Sequence[str],
    needles: Needles,
) -> Any:
    changes: JsonObject = {}
    for column in columns:
        value = getattr(record, column)
        is_text = isinstance(value, str)
        text = value if is_text else orjson.dumps(value).decode()

        for needle in needles:
            text = _word_pattern(needle if is_text else _in_json(needle)).sub(
                lambda _: ERASED,
                text,
            )

        changes[column] = text if is_text else orjson.loads(text)

    return record.model_copy(update=changes)


def _removal_commands(rows: dict[str, list[str]], files: Iterable[str]) -> list[str]:
    """What removes each leftover. Rows that follow from documents go with those that hold the
    words.
    """
    commands = []
    for collection, keys in rows.items():
        if collection in _COMMANDS:
            commands += [_COMMANDS[collection].format(key=key) for key in keys]
        elif "documents" not in rows:
            commands.append(_REBUILD)

    for name in files:
        place, _, inner = name.partition("/")
        folder = inner.partition("/")[0]
        if place.startswith("graph.db"):
            commands += [] if rows else [_COMPACT]
        elif place == "snapshots":
            commands.append(f"hades publish, then remove the old snapshot: rm -r {place}/{folder}")
        elif place == "branches":
            commands.append(f"hades branch --drop {folder}")
        else:
            commands.append(f"rm {name}")

    return list(dict.fromkeys(commands))


_ERASURE = "erase"  # what the ids of erasures begin with
# What an empty place keeps of its version, and what it has in the stead of the rest.
_PLACE = {"key", "topic", "version", "timestamp", "parent_state_id"}
_BLANK: JsonObject = {
    "content": "",
    "confidence": 0.0,
    "importance_score": 0.0,
}
Certificate = dict[str, Any]


def erase_states(
    rows: RowStore,
    names: Sequence[str],
    act: Act,
) -> tuple[Certificate, Needles]:
    """Erase states by id, or whole topics by name, with all that was made of them; also return the
    words to look for.

    Hashes stand in the certificate for what went; nothing of it can be read from them. A version
    among others leaves an empty place, so that the trace stays without gaps; a topic that goes
    whole leaves none.
    """
    named_keys: set[str] = set()
    for name in names:
        key = name.removeprefix(f"{STATES}/")
        named_keys.update([key] if is_state_key(key) else states.keys_of(rows, name))

    derived = _derived_keys(rows, named_keys)
    stored = fetch(
        rows,
        MemoryState,
        sorted(named_keys | derived),
    )
    gone = {key: state for key, state in stored.items() if not states.is_erased(state)}

    if not gone:
        raise UnknownMemory(
            f"nothing of {', '.join(names)} is left to erase; `hades memory history` shows what "
            "there is"
        )

    texts = {}
    for state in states.make_whole(rows, list(gone.values())):
        texts[state.key] = state

    identity = content_key(
        _ERASURE,
        act.who,
        str(act.at),
        *sorted(gone),
    )
    whole_topics, rebased = _remove_states(rows, gone, identity)
    edges, relinked = _remove_edges(rows, gone, whole_topics)
    blanked = _blank_records(
        rows,
        [*gone, *edges, *(f"conflict_{edge}" for edge in edges)],
        identity,
    )
    # What was made of it also holds words of others, which stay where they are.
    erased = [texts[key] for key in sorted(named_keys & gone.keys())]

    surviving: list[str] = []
    for topic in sorted({state.topic for state in erased}):
        surviving += [state.content for state in states.history(rows, topic)]

    needles = needles_of(
        [state.content for state in erased],
        surviving,
        whole_topics,
    )
    removed = []
    for key in sorted(gone):
        digest = sha256_text(texts[key].content)
        removed.append(
            {
                "id": key,
                "version": gone[key].version,
                "sha256": digest,
            }
        )

    certificate = {
        "id": identity,
        "at": str(act.at),
        "who": act.who,
        "why": act.why,
        "states": removed,
        "derived": sorted(derived & gone.keys()),
        "topics": sorted(sha256_text(topic) for topic in whole_topics),
        "edges": edges,
        "rebased": rebased,
        "relinked": relinked,
        "audit_blanked": blanked,
        "proof": sha256_text(canonical_json(removed)),
        "redacted": redact_rows(rows, needles),
    }
    summaries = set()
    for state in erased:
        if state.is_consolidated:
            summaries.add(sha256_text(state.topic))

    act.note(
        "erase",
        identity,
        {
            **certificate,
            "summaries": sorted(summaries),
        },
    )
    return certificate, needles


def erased_summary_topics(rows: RowStore) -> set[str]:
    """Hashes of the topics of summaries that somebody erased by name; consolidation must not write
    them again.
    """
    of_erasures = [Term("subject", "starts_with", f"{_ERASURE}_")]

    topic_hashes: set[str] = set()
    for note in scan(rows, MemoryAudit, of_erasures):
        topic_hashes.update(note.detail.get("summaries", ()))

    return topic_hashes


def _derived_keys(rows: RowStore, named_keys: set[str]) -> set[str]:
    """Summaries and synthesised versions that were made, directly or not, of what is asked for; all
    rows are read.
    """
    made_of: dict[str, set[str]] = {}
    for row in scan_rows(
        rows,
        STATES,
        columns=["consolidated_from", "metadata"],
    ):
        sources = set(row["consolidated_from"] or ())
        if '"made_from"' in row["metadata"]:
            sources.update(orjson.loads(row["metadata"]).get("made_from", ()))
        made_of[row["_key"]] = sources

    gone = named_keys
    found = named_keys
    while found:
        found = {key for key, sources in made_of.items() if sources & gone} - gone
        gone = gone | found

    return gone - named_keys


def _remove_states(
    rows: RowStore,
    gone: dict[str, MemoryState],
    identity: str,
) -> tuple[list[str], list[str]]:
    """Remove or empty the rows; versions that were deltas of them are made whole. Topics that went,
    rows re-made.
    """
    whole_topics: list[str] = []

    rebased: list[str] = []
    for topic in sorted({state.topic for state in gone.values()}):
        keys = states.keys_of(rows, topic)
        remaining: list[MemoryState] = []
        for key, state in fetch(rows, MemoryState, keys).items():
            if key not in gone and not states.is_erased(state):
                remaining.append(state)

        if remaining:
            leaving = [state for state in gone.values() if state.topic == topic]
            rebased += _empty_places(rows, leaving, remaining, identity)
        else:
            whole_topics.append(topic)
            rows.delete(STATES, keys=keys)
            rows.delete(LATEST, keys=[topic_key(topic)])

        rows.delete(TRACES, keys=[topic_key(topic)])

    return whole_topics, rebased


def _empty_places(
    rows: RowStore,
    leaving: list[MemoryState],
    remaining: list[MemoryState],
    identity: str,
) -> list[str]:
    """Blank the versions that go, and make those whole that were deltas of them; keys of these."""
    texts = {state.key: state.content for state in states.make_whole(rows, remaining)}
    parents = {state.version for state in leaving}

    remade: dict[str, MemoryState] = {}
    for state in remaining:
        if state.is_delta and state.version - 1 in parents:
            whole = {
                "content": texts[state.key],
                "is_delta": False,
                "diff_from_parent": None,
            }
            remade[state.key] = state.model_copy(update=whole)

    newest = max(remaining, key=lambda state: state.version)
    if newest.key not in remade and not states.is_whole(newest):
        remade[newest.key] = states.unshrink(newest, texts[newest.key])

    changed = list(remade.values())
    for state in leaving:
        stays = state.model_dump(include=_PLACE)
        changed.append(
            MemoryState(
                **stays,
                **_BLANK,
                metadata={"erased": identity},
            )
        )

    put(rows, sorted(changed, key=lambda state: state.key))
    pointer = states.pointer_to(rows, newest.topic)
    if pointer is not None and pointer.latest_state_id != newest.key:
        moved = {
            "latest_state_id": newest.key,
            "began": newest.valid_from,
        }
        put(rows, [pointer.model_copy(update=moved)])

    return sorted(remade)


def _remove_edges(
    rows: RowStore,
    gone: dict[str, MemoryState],
    whole_topics: list[str],
) -> tuple[list[str], list[str]]:
    """Remove the edges of what went, but those between versions of a topic that stays; repair
    supersessions.
    """
    nodes = [state_id(key) for key in sorted(gone)]
    emptied = set(map(topic_key, whole_topics))
    keys: list[str] = []

    successors: dict[str, str | None] = {}
    for edge in edges_at(rows, nodes):
        is_version = edge.relationship_type == MemoryRelation.EVOLVES_TO
        if not is_version or topic_of_key(edge.target) in emptied:
            keys.append(edge.key)
            successors[edge.id] = edge.superseded_by

    rows.delete(EDGES, keys=keys)
    return sorted(successors), _skip_edges(rows, successors) if successors else []


def _skip_edges(rows: RowStore, successors: dict[str, str | None]) -> list[str]:
    """Let supersessions skip the edges that went."""
    relinked = []
    for edge in scan(
        rows,
        MemoryEdge,
        [Term("superseded_by", "in", sorted(successors))],
    ):
        step = edge.superseded_by
        while step in successors:
            step = successors[step]

        relinked.append(edge.model_copy(update={"superseded_by": step}))

    put(rows, relinked)
    return sorted({edge.id for edge in relinked})


def _blank_records(
    rows: RowStore,
    subjects: Iterable[str],
    identity: str,
) -> int:
    """Leave of the records of what went only who did what when."""
    notes = list(
        scan(
            rows,
            MemoryAudit,
            [Term("subject", "in", sorted(subjects))],
        )
    )
    blank = {
        "why": "",
        "detail": {"erased": identity},
    }
    put(rows, [note.model_copy(update=blank) for note in notes])
    return len(notes)


def finish_erasure(
    store: GraphStore,
    home: Path | None,
    certificate: Certificate,
    needles: Needles,
) -> Certificate:
    """Take the words out of free pages, logs and cached answers, then search every row and byte for
    them.

    home is that of an embedded store unless given. Complete when that finds nothing; else
    `commands` remove the rest.
    """
    store.compact()
    path = store.describe().get("path")
    folder = home or (Path(path).resolve().parent if path else None)
    masked = mask_files(folder, needles) if folder else []

    if folder:
        files = list(find_in_files(folder, needles))
    else:
        files = []

    rows = find_in_rows(store, needles)
    findings = {
        "masked_files": masked,
        "left_behind": rows,
        "files": files,
        "commands": _removal_commands(rows, files),
    }
    return {
        **certificate,
        **findings,
        "complete": not rows and not files,
    }


_EDGE_ACTIONS = ("link", "fact", "close", "withdraw", "restore")


def undo_act(
    rows: RowStore,
    audit_id: str,
    act: Act,
) -> JsonObject:
    """Take back an act, last step first: edges that changed, versions retracted, versions said
    again.

    Nothing is lost: a version that is retracted never held from now on, and a question about what
    was known before still finds it. Edges get new beliefs, conflicts the decision they had; undoing
    an undo says the versions again. Refused when something later rests on it: undo that first.
    """
    steps = states.act_of(rows, audit_id)
    undone: JsonObject = {
        "edges": [],
        "new_states": [],
        "retracted": [],
    }

    for step in reversed(steps):
        if "erased" in step.detail:
            raise MemoryRefused(
                f"{step.action} of {step.subject} cannot be undone; what it was about was erased"
            )

        if step.action in _EDGE_ACTIONS:
            _undo_edge(rows, step, act)
            undone["edges"].append(step.subject)
        elif step.action == "add":
            _retract_version(rows, step, act)
            undone["retracted"].append(step.subject)
        elif step.action == "retract":
            undone["new_states"].append(_restore_version(rows, step, act))
        elif step.action == states.RATED:
            # One that was erased since has no importance.
            for state in states.by_keys(rows, [step.subject]):
                states.set_importance(
                    rows,
                    state,
                    float(step.detail["before"]),
                    act,
                )
        elif step.action == CONFLICT:
            restore_conflict(rows, step, act)
        elif step.action == "erase":
            raise MemoryRefused(f"erasure {step.subject} cannot be undone; what was erased is gone")

    act.note(
        "undo",
        steps[0].key,
        {"undoes": steps[0].key},
    )
    return {
        "undid": [step.key for step in steps],
        **undone,
        "act": act.key,
    }


def _undo_edge(
    rows: RowStore,
    step: MemoryAudit,
    act: Act,
) -> None:
    key_before = step.detail.get("before")
    key_after = step.detail.get("after")

    beliefs = {}
    for belief in beliefs_of(rows, step.subject):
        beliefs[belief.key] = belief

    current = list(beliefs.values())[-1]
    is_believed = current.retracted_at is None
    # An undo writes another row with the old meaning, so meanings are compared and not rows.
    meaning = meaning_of(current) if is_believed else None

    if meaning != (key_after and meaning_of(beliefs[key_after])):
        raise MemoryRefused(
            f"edge {step.subject} changed after {step.key}; undo what came later first (`hades "
            "memory audit` lists it)"
        )

    following = beliefs[key_before] if key_before else None
    supersede(
        rows,
        current,
        following,
        act,
        "restore" if following else "withdraw",
    )


def _retract_version(
    rows: RowStore,
    step: MemoryAudit,
    act: Act,
) -> None:
    """Let a version never have held, from now on; its row, its text and its number stay."""
    topic = str(step.detail["topic"])
    version = int(step.detail["version"])
    state = _check_unchanged(rows, topic, version)
    at = max(act.at, state.timestamp + states.INSTANT)
    put(rows, [state.model_copy(update={"retracted_at": at})])
    drawn = states.evolution(state)

    if drawn is not None:
        edges = fetch(rows, MemoryEdge, [drawn.key]).values()
        retracted = []
        for edge in edges:
            retracted.append(edge.model_copy(update={"retracted_at": at}))

        put(rows, retracted)

    pointer = states.pointer_to(rows, topic)
    assert pointer is not None
    put(rows, [pointer.model_copy(update={"in_order": False})])
    act.note(
        "retract",
        state.key,
        {"topic": topic, "version": version},
    )


def _check_unchanged(
    rows: RowStore,
    topic: str,
    version: int,
) -> MemoryState:
    """The row of a version that no later version rests on."""
    pointer = states.pointer_to(rows, topic)
    count = pointer.version if pointer else 0
    versions = fetch(
        rows,
        MemoryState,
        version_keys(topic, count, version),
    ).values()

    standing = []
    for state in versions:
        if not is_gone(state):
            standing.append(state)

    if standing and standing[-1].version > version:
        raise MemoryRefused(
            f"{topic!r} has newer versions than {version}; undo those first (the newest is "
            f"{standing[-1].version})"
        )

    if not standing:
        raise MemoryRefused(
            f"version {version} of {topic!r} was undone or erased already; there is nothing to undo"
        )

    return standing[0]


def is_gone(state: MemoryState) -> bool:
    """Whether a version was retracted or erased."""
    return state.retracted_at is not None or states.is_erased(state)


def _restore_version(
    rows: RowStore,
    step: MemoryAudit,
    act: Act,
) -> MemoryState:
    """Say a retracted version again, for the same time; the retraction stays in the history."""
    retracted = fetch(rows, MemoryState, [step.subject]).get(step.subject)
    if retracted is None or states.is_erased(retracted):
        raise MemoryRefused(f"{step.subject} cannot be said again; it was erased")

    previous = states.make_whole(rows, [retracted])[0]
    origin = {
        "reverts": step.subject,
        "made_from": [previous.key],
    }
    again = states.renewed(
        previous,
        metadata={**previous.metadata, **origin},
    )
    return states.append(rows, [again], act)[0]
