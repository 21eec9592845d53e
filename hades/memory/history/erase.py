"""Undo of an act; erasing, and the proof of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.memory.history import rows as records
from hades.memory.history import states
from hades.memory.history.edges import beliefs_of, edges_at, meaning_of, supersede
from hades.memory.history.facts import CONFLICT, restore_conflict
from hades.memory.history.rows import MemoryRefused, UnknownMemory
from hades.memory.history.states import Act
from hades.ports.store import GraphStore, RowStore, Term, scan_rows
from hades.text.sentences import sentences_of
from schemas.catalogue import COLLECTIONS as CATALOGUE
from schemas.ids import content_key, sha256_text
from schemas.memory import MemoryAudit, MemoryEdge, MemoryRelation, MemoryState
from schemas.record import Keyed, canonical_json

SHORTEST = 4  # characters; a shorter text stands in too many others
ERASED = "[erased]"
_CHUNK = 8 * 1024 * 1024
_MODELS = "cache/models"  # exported models, never text of a user
_MASKED = ("logs/", "reports/", "cache/")  # files whose words are overwritten in place
_QUOTING: dict[str, tuple[type[Keyed], tuple[str, ...]]] = {
    records.EDGES: (MemoryEdge, ("description", "metadata")),
    records.AUDIT: (MemoryAudit, ("why", "detail")),
    records.STATES: (MemoryState, ("metadata",)),
}
_COMMANDS = {
    records.STATES: "hades memory erase {key}",
    "doc_chunks": "hades forget DOCUMENT (document of chunk {key})",
    "documents": "hades forget {key}",
}


def needles_of(texts: Sequence[str], surviving: Sequence[str], names: Sequence[str]) -> list[str]:
    """The lines and sentences of erased texts that no surviving text holds too, and the names; longest first.

    A hit of one counts only where no letter or digit stands on either side of it.
    """
    wanted = {sentence for text in texts for sentence in sentences_of(text) if any(map(str.isalnum, sentence))}
    gone = {one for one in wanted if not any(_pattern(one).search(text) for text in surviving)}
    return sorted((one for one in {*gone, *names} if len(one) >= SHORTEST), key=lambda one: (-len(one), one))


def redact_rows(rows: RowStore, needles: Sequence[str]) -> int:
    """Replace the needles in reasons, descriptions and metadata of what stays; how many rows changed."""
    changed = 0
    for collection, (record, columns) in _QUOTING.items():
        found = records.fetch(rows, collection, _rows_with(rows, collection, columns, needles), record)
        records.put(rows, collection, [_redact(one, columns, needles) for one in found.values()])
        changed += len(found)
    return changed


def find_in_rows(store: RowStore, needles: Sequence[str], *, everywhere: bool) -> dict[str, list[str]]:
    """Keys of the rows of memory, or of every collection, that still hold a needle."""
    found = {}
    for one in CATALOGUE:
        texts = [field.name for field in one.schema if pa.types.is_string(field.type) and field.name != "_key"]
        if texts and (everywhere or one.name in records.COLLECTIONS):
            found[one.name] = _rows_with(store, one.name, texts, needles)
    return {name: keys for name, keys in found.items() if keys}


def find_in_files(home: Path, needles: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Files under a home that hold a needle, by their path in it, and where they do; every byte is read."""
    forms = dict.fromkeys(form for one in needles for form in (one, _in_json(one), quote(one, safe="")))
    patterns = {form.encode(): re.compile(_pattern(form).pattern.encode()) for form in forms}
    names = {path.relative_to(home).as_posix(): path for path in home.rglob("*") if path.is_file()}
    wanted = [name for name in sorted(names) if not names[name].is_symlink() and not name.startswith(_MODELS)]
    found = {name: list(_matches(names[name], patterns)) for name in wanted if patterns}
    return {name: hits for name, hits in found.items() if hits}


def mask_files(home: Path, needles: Sequence[str]) -> list[str]:
    """Overwrite needles with stars in logs, reports and cached answers; the files that changed."""
    found = {name: hits for name, hits in find_in_files(home, needles).items() if name.startswith(_MASKED)}
    for name, hits in found.items():
        with (home / name).open("r+b") as file:
            for start, end in hits:
                file.seek(start)
                file.write(b"*" * (end - start))
    return list(found)


def _matches(path: Path, patterns: Mapping[bytes, re.Pattern[bytes]]) -> Iterator[tuple[int, int]]:
    overlap = max(len(pattern.pattern) for pattern in patterns.values())
    with path.open("rb") as file:
        before, at = b"", 0
        while chunk := file.read(_CHUNK):
            held = before + chunk
            for form, pattern in patterns.items():
                for hit in pattern.finditer(held) if form in held else ():  # looking for plain bytes is far quicker
                    yield at - len(before) + hit.start(), at - len(before) + hit.end()
            at += len(chunk)
            before = held[-overlap:]


def _pattern(needle: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9A-Za-z]){re.escape(needle)}(?![0-9A-Za-z])")


def _in_json(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _rows_with(store: RowStore, collection: str, columns: Sequence[str], needles: Sequence[str]) -> list[str]:
    """Keys of the rows that hold a needle in one of the columns."""
    forms = dict.fromkeys(form for one in needles for form in (one, _in_json(one)))
    patterns = [rf"(?:^|[^0-9A-Za-z]){re.escape(form)}(?:$|[^0-9A-Za-z])" for form in forms]
    keys: list[str] = []
    for batch in store.scan(collection, columns=columns) if patterns else ():
        hit = pa.array([False] * batch.num_rows)
        for column in columns:
            for pattern in patterns:
                hit = pc.or_(hit, pc.fill_null(pc.match_substring_regex(batch.column(column), pattern), False))
        keys += batch.column("_key").filter(hit).to_pylist()
    return keys


def _redact(record: Any, columns: Sequence[str], needles: Sequence[str]) -> Any:
    changes: dict[str, Any] = {}
    for column in columns:
        value = getattr(record, column)
        is_text = isinstance(value, str)
        text = value if is_text else orjson.dumps(value).decode()
        for one in needles:
            text = _pattern(one if is_text else _in_json(one)).sub(lambda _: ERASED, text)
        changes[column] = text if is_text else orjson.loads(text)
    return record.model_copy(update=changes)


def _commands(rows: dict[str, list[str]], files: Iterable[str]) -> list[str]:
    """What removes each leftover."""
    commands = [
        _COMMANDS.get(collection, f"edit or remove row {{key}} of {collection}").format(key=key)
        for collection, keys in rows.items()
        for key in keys
    ]
    for name in files:
        if name.startswith("graph.db") and not rows:
            commands.append("close other processes that use the store, then: hades memory compact")
        elif name.startswith("snapshots/"):
            commands.append(f"hades publish, then remove the old snapshot: rm -r {'/'.join(name.split('/')[:2])}")
        elif not name.startswith("graph.db"):
            commands.append(f"rm {name}")
    return list(dict.fromkeys(commands))


_ERASURE = "erase"  # what the ids of erasures begin with
Certificate = dict[str, Any]


def erase_states(rows: RowStore, names: Sequence[str], act: Act) -> tuple[Certificate, list[str]]:
    """Erase states by id, or whole topics by name, with all that was made of them; the words to look for then.

    Hashes stand in the certificate for what went; nothing of it can be read from them. A version among others leaves an
    empty place, so that the trace stays without gaps; a topic that goes whole leaves none.
    """
    plain = {name: name.removeprefix(f"{records.STATES}/") for name in names}
    asked = {
        key
        for name in names
        for key in ([plain[name]] if records.is_state_key(plain[name]) else states.keys_of(rows, name))
    }
    derived = _derive(rows, asked)
    gone = records.fetch(rows, records.STATES, sorted(asked | derived), MemoryState)
    gone = {key: state for key, state in gone.items() if not states.is_erased(state)}
    if not gone:
        raise UnknownMemory(
            f"nothing of {', '.join(names)} is left to erase; `hades memory history` shows what there is"
        )
    texts = {state.key: state for state in states.make_whole(rows, list(gone.values()))}
    identity = content_key(_ERASURE, act.who, str(act.at), *sorted(gone))
    whole_topics, rebased = _take_states(rows, gone, identity)
    edges, relinked = _take_edges(rows, gone, whole_topics)
    blanked = _blank(rows, [*gone, *edges, *(f"conflict_{edge}" for edge in edges)], identity)
    # What was made of it also holds words of others, which stay where they are.
    said = [texts[key].content for key in sorted(asked & gone.keys())]
    stays = [
        one.content
        for topic in sorted({gone[key].topic for key in asked & gone.keys()})
        for one in states.history(rows, topic)
    ]
    needles = needles_of(said, stays, whole_topics)
    removed = [
        {"id": key, "version": state.version, "sha256": sha256_text(texts[key].content)}
        for key, state in sorted(gone.items())
    ]
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
    asked_summaries = sorted({sha256_text(gone[key].topic) for key in asked & gone.keys() if gone[key].is_consolidated})
    act.note("erase", identity, {**certificate, "summaries": asked_summaries})
    return certificate, needles


def erase_summaries(rows: RowStore) -> set[str]:
    """Hashes of the topics of summaries that somebody erased by name; consolidation must not write them again."""
    return {
        one
        for note in records.scan(rows, records.AUDIT, MemoryAudit, [Term("subject", "starts_with", f"{_ERASURE}_")])
        for one in note.detail.get("summaries", ())
    }


def _derive(rows: RowStore, asked: set[str]) -> set[str]:
    """Summaries and synthesised versions that were made, directly or not, of what is asked for; all rows are read."""
    made_of: dict[str, set[str]] = {}
    for row in scan_rows(rows, records.STATES, columns=["consolidated_from", "metadata"]):
        sources = set(row["consolidated_from"] or ())
        if '"made_from"' in row["metadata"]:
            sources |= set(orjson.loads(row["metadata"]).get("made_from", ()))
        if sources:
            made_of[row["_key"]] = sources
    found: set[str] = set()
    while more := {key for key, sources in made_of.items() if sources & (asked | found)} - found - asked:
        found |= more
    return found


def _take_states(rows: RowStore, gone: dict[str, MemoryState], identity: str) -> tuple[list[str], list[str]]:
    """Remove or empty the rows; versions that were deltas of them are made whole. Topics that went, rows re-made."""
    whole_topics: list[str] = []
    rebased: list[str] = []
    for topic in sorted({state.topic for state in gone.values()}):
        keys = states.keys_of(rows, topic)
        held = records.fetch(rows, records.STATES, keys, MemoryState)
        left = [state for key, state in held.items() if key not in gone and not states.is_erased(state)]
        if left:
            rebased += _empty_places(rows, held, left, gone, identity)
        else:
            whole_topics.append(topic)
            rows.delete(records.STATES, keys=keys)
            rows.delete(records.LATEST, keys=[records.topic_key(topic)])
        rows.delete(records.TRACES, keys=[records.topic_key(topic)])
    return whole_topics, rebased


def _empty_places(
    rows: RowStore, held: dict[str, MemoryState], left: list[MemoryState], gone: dict[str, MemoryState], identity: str
) -> list[str]:
    texts = {state.key: state.content for state in states.make_whole(rows, left)}
    remade = {
        state.key: state.model_copy(update={"content": texts[state.key], "is_delta": False, "diff_from_parent": None})
        for state in left
        if state.is_delta and records.state_key(state.topic, state.version - 1) in gone
    }
    newest = max(left, key=lambda state: state.version)
    if newest.key not in remade and not states.is_whole(newest):
        remade[newest.key] = states.unshrink(newest, texts[newest.key])
    stays = {"key", "topic", "version", "timestamp", "parent_state_id"}
    blank = {"content": "", "metadata": {"erased": identity}, "confidence": 0.0, "importance_score": 0.0}
    tombs = [MemoryState(**held[key].model_dump(include=stays), **blank) for key in gone if key in held]
    records.put(rows, records.STATES, sorted([*remade.values(), *tombs], key=lambda state: state.key))
    pointer = states.pointer_to(rows, newest.topic)
    if pointer is not None and pointer.latest_state_id != newest.key:
        moved = {"latest_state_id": newest.key, "began": newest.valid_from}
        records.put(rows, records.LATEST, [pointer.model_copy(update=moved)])
    return sorted(remade)


def _take_edges(rows: RowStore, gone: dict[str, MemoryState], whole_topics: list[str]) -> tuple[list[str], list[str]]:
    """Remove the edges of what went, but those between versions of a topic that stays; repair supersessions."""
    nodes = [records.state_id(key) for key in sorted(gone)]
    emptied = {records.topic_key(topic) for topic in whole_topics}
    touched = [
        edge
        for edge in edges_at(rows, nodes)
        if edge.relationship_type != MemoryRelation.EVOLVES_TO or records.topic_of_key(edge.target) in emptied
    ]
    rows.delete(records.EDGES, keys=[edge.key for edge in touched])
    after = {edge.id: edge.superseded_by for edge in touched}
    relinked = _skip_edges(rows, after) if after else []
    return sorted(after), relinked


def _skip_edges(rows: RowStore, after: dict[str, str | None]) -> list[str]:
    """Let supersessions skip the edges that went."""
    relinked = []
    for edge in records.scan(rows, records.EDGES, MemoryEdge, [Term("superseded_by", "in", sorted(after))]):
        step = edge.superseded_by
        while step in after:
            step = after[step]
        relinked.append(edge.model_copy(update={"superseded_by": step}))
    records.put(rows, records.EDGES, relinked)
    return sorted({edge.id for edge in relinked})


def _blank(rows: RowStore, subjects: Iterable[str], identity: str) -> int:
    """Leave of the records of what went only who did what when."""
    found = [
        one.model_copy(update={"why": "", "detail": {"erased": identity}})
        for one in records.scan(rows, records.AUDIT, MemoryAudit, [Term("subject", "in", sorted(subjects))])
    ]
    records.put(rows, records.AUDIT, found)
    return len(found)


def finish_erasure(
    store: GraphStore, home: Path | None, certificate: Certificate, needles: Sequence[str]
) -> Certificate:
    """Take the words out of free pages, logs and cached answers, then search every row and byte for them.

    home is that of an embedded store unless given. Complete when that finds nothing; else `commands` remove the rest.
    """
    store.compact()
    path = store.describe().get("path")
    folder = home or (Path(path).resolve().parent if path else None)
    masked = mask_files(folder, needles) if folder else []
    files = list(find_in_files(folder, needles)) if folder else []
    rows = find_in_rows(store, needles, everywhere=False)
    if "graph.db" in files and not rows:  # not memory's: another collection quotes it
        rows = find_in_rows(store, needles, everywhere=True)
    found = {"masked_files": masked, "left_behind": rows, "files": files, "commands": _commands(rows, files)}
    return {**certificate, **found, "complete": not rows and not files}


_EDGE_ACTIONS = ("link", "fact", "close", "withdraw", "restore")


def undo_act(rows: RowStore, audit_id: str, act: Act) -> dict[str, Any]:
    """Take back an act, last step first: edges that changed, versions retracted, versions said again.

    Nothing is lost: a version that is retracted never held from now on, and who asks what was known before still sees
    it. Edges get new beliefs, conflicts the decision they had; undoing an undo says the versions again. Refused when
    something later rests on it: undo that first.
    """
    steps = states.act_of(rows, audit_id)
    edges: list[str] = []
    new_states: list[MemoryState] = []
    retracted: list[str] = []
    for step in reversed(steps):
        if "erased" in step.detail:
            raise MemoryRefused(f"{step.action} of {step.subject} cannot be undone; what it was about was erased")
        if step.action in _EDGE_ACTIONS:
            _undo_edge(rows, step, act)
            edges.append(step.subject)
        elif step.action == "add":
            _retract(rows, step, act)
            retracted.append(step.subject)
        elif step.action == "retract":
            new_states.append(_say_again(rows, step, act))
        elif step.action == states.RATED:
            for state in states.by_keys(rows, [step.subject]):  # one that was erased since has no importance
                states.set_importance(rows, state, float(step.detail["before"]), act)
        elif step.action == CONFLICT:
            restore_conflict(rows, step, act)
        elif step.action == "erase":
            raise MemoryRefused(f"erasure {step.subject} cannot be undone; what was erased is gone")
    act.note("undo", steps[0].key, {"undoes": steps[0].key})
    undid = [step.key for step in steps]
    return {"undid": undid, "edges": edges, "new_states": new_states, "retracted": retracted, "act": act.key}


def _undo_edge(rows: RowStore, step: MemoryAudit, act: Act) -> None:
    before, after = step.detail.get("before"), step.detail.get("after")
    beliefs = {belief.key: belief for belief in beliefs_of(rows, step.subject)}
    current = list(beliefs.values())[-1]
    is_believed = current.retracted_at is None
    # An undo writes another row with the old meaning, so meanings are compared and not rows.
    if is_believed != (after is not None) or (after is not None and meaning_of(current) != meaning_of(beliefs[after])):
        raise MemoryRefused(
            f"edge {step.subject} changed after {step.key}; undo what came later first (`hades memory audit` lists it)"
        )
    supersede(rows, current, beliefs[before] if before else None, act, "restore" if before else "withdraw")


def _retract(rows: RowStore, step: MemoryAudit, act: Act) -> None:
    """Let a version never have held, from now on; its row, its text and its number stay."""
    topic, version = str(step.detail["topic"]), int(step.detail["version"])
    state = _check_unchanged(rows, topic, version)
    at = max(act.at, state.timestamp + states.INSTANT)
    records.put(rows, records.STATES, [state.model_copy(update={"retracted_at": at})])
    drawn = states.evolution(state)
    held = records.fetch(rows, records.EDGES, [drawn.key], MemoryEdge) if drawn else {}
    records.put(rows, records.EDGES, [one.model_copy(update={"retracted_at": at}) for one in held.values()])
    pointer = states.pointer_to(rows, topic)
    assert pointer is not None
    records.put(rows, records.LATEST, [pointer.model_copy(update={"in_order": False})])
    act.note("retract", state.key, {"topic": topic, "version": version})


def _check_unchanged(rows: RowStore, topic: str, version: int) -> MemoryState:
    """The row of a version that no later version rests on."""
    pointer = states.pointer_to(rows, topic)
    count = pointer.version if pointer else 0
    held = records.fetch(rows, records.STATES, records.version_keys(topic, count, version), MemoryState)
    later = [one.version for one in held.values() if one.version > version and not is_gone(one)]
    if later:
        raise MemoryRefused(
            f"{topic!r} has newer versions than {version}; undo those first (the newest is {later[-1]})"
        )
    state = held.get(records.state_key(topic, version))
    if state is None or is_gone(state):
        raise MemoryRefused(f"version {version} of {topic!r} was undone or erased already; there is nothing to undo")
    return state


def is_gone(state: MemoryState) -> bool:
    """Whether a version was retracted or erased."""
    return state.retracted_at is not None or states.is_erased(state)


def _say_again(rows: RowStore, step: MemoryAudit, act: Act) -> MemoryState:
    """Say a retracted version again, for the same time; the retraction stays in the history."""
    found = records.fetch(rows, records.STATES, [step.subject], MemoryState)
    kept = [state for state in found.values() if not states.is_erased(state)]
    if not kept:
        raise MemoryRefused(f"{step.subject} cannot be said again; it was erased")
    before = states.make_whole(rows, kept)[0]
    made = {"reverts": step.subject, "made_from": [before.key]}
    again = states.renewed(before, metadata={**before.metadata, **made})
    return states.append(rows, [again], act)[0]
