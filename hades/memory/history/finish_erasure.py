"""The end of an erasure: the words leave free pages, logs and cached answers; then every row and byte is searched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hades.memory.history.erase import Certificate, ErasedWords
from hades.memory.history.erasure_scan import find_remains, mask_files
from hades.memory.history.names import STATES
from hades.ports.store import GraphStore


def finish_erasure(store: GraphStore, home: Path | None, gone: ErasedWords) -> Certificate:
    """The certificate of an erasure, with what is left of it; the home is that of an embedded store unless given."""
    store.compact([STATES])
    path = store.describe().get("path")
    folder = home or (Path(path).resolve().parent if path else None)
    masked = mask_files(folder, gone.needles) if folder else []
    left = find_remains(store, folder, gone.needles, gone.topics)
    return replace(
        gone.certificate, masked_files=masked, left_behind=left.rows, files=left.files, commands=left.commands
    )
