"""What a plan was made from: files of corpora, settings, rows. One that moved on is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from hades.files import sha256_of
from hades.ingest.sources.files import walk
from hades.ingest.sources.git import find_git_dir, resolve_commit
from hades.night.stage import leaves_of
from hades.night.weights.feedback import judge_digest
from hades.ports.store import RowStore
from hades.retrieval.turn_result import QUERY_LOGS
from hades.settings.tree import Settings
from hades.snapshot.pointer import served
from schemas.catalogue import NAMES
from schemas.sources import FILE_FIELDS, SourceKind, SourceSpec

Digests = dict[str, str]
# The settings that a graph, or an answer from it, depends on. How it is stored, served and logged
# may change between a plan and its application.
SHAPING = (
    "store",
    "embedder",
    "embedder_model",
    "llm_base_url",
    "llm_model",
    "llm_max_calls",
    "hirag_pathrag",
    "hipporag",
    "plan",
    "history",
    "learning",
)
_NAMED = 3
_GONE = "not there"
_COMMIT = "(newest commit)"


def shaping_settings(settings: Settings) -> Digests:
    """The values of these settings by their dotted names."""
    values = settings.model_dump(mode="json", include=set(SHAPING))
    return {path: str(value) for path, value in leaves_of(values)}


def corpus_files(spec: SourceSpec) -> Digests:
    """The hash of every file that a corpus is read from, by its path in it, and of its newest
    commit.
    """
    root = Path(spec.path)

    digests = {}
    for name in FILE_FIELDS:
        path = getattr(spec, name)
        if path is not None and not Path(path).is_dir():
            digests[path] = sha256_of(Path(path)) if Path(path).is_file() else _GONE

    if root.is_dir():
        is_code = spec.source == SourceKind.WORKSPACE
        for entry in walk(
            str(root),
            respect_ignores=is_code,
            exclude=spec.exclude,
        ):
            is_hidden = PurePosixPath(entry.relative).name.startswith(".")
            if entry.problem is None and (is_code or not is_hidden):
                digests[entry.relative] = sha256_of(Path(entry.path))

        git_dir = find_git_dir(root)
        digests[_COMMIT] = (resolve_commit(git_dir) or "") if git_dir else ""

    return digests


def store_marks(store: RowStore) -> Digests:
    """The mark of every collection but the log of questions, which grows with each one."""
    return store.marks([name for name in NAMES if name != QUERY_LOGS])


def read_inputs(
    store: RowStore,
    home: Path,
    settings: Settings,
    specs: Sequence[SourceSpec],
) -> dict[str, Digests]:
    """Everything that a plan depends on and that somebody else may change, but the rows."""
    return {
        **{spec.path: corpus_files(spec) for spec in specs},
        "settings": shaping_settings(settings),
        "graph": {
            "snapshot that serves": served(home),
            "judged answers": judge_digest(store),
        },
    }


def describe_moves(
    planned: Mapping[str, Digests],
    now: Mapping[str, Digests],
) -> list[str]:
    """What is not as it was planned from, a sentence for each place."""
    places = (
        _describe_place(
            place,
            planned[place],
            now.get(place, {}),
        )
        for place in planned
    )
    return list(filter(None, places))


def _describe_place(
    place: str,
    planned: Digests,
    now: Digests,
) -> str:
    names = sorted(planned.keys() | now.keys())
    moved = [name for name in names if planned.get(name) != now.get(name)]
    if not moved:
        return ""

    changes = []
    for name in moved[:_NAMED]:
        if place in ("settings", "graph"):
            value = now.get(name) or "none"
            former = planned.get(name) or "none"
            changes.append(f"{name} was {former} and is {value}")
        elif name not in now:
            changes.append(f"{name} was removed")
        else:
            changes.append(f"{name} {'changed' if name in planned else 'was added'}")

    is_listed = place in ("settings", "graph") or len(moved) <= _NAMED
    if is_listed:
        more = ""
    else:
        more = f" and {len(moved) - _NAMED:,} more"

    return f"{place}: {', '.join(changes)}{more}"
