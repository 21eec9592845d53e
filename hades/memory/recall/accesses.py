"""Which states were shown: one line a reading in `logs/memory_accesses.jsonl`, counted into the store by upkeep.

Readers append to a file and wait for nobody. A line holds keys, which tell nothing of what was read. Counting is a
separate step, so that looking something up never writes to the store.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hades.memory.history.names import key_of

FILE = Path("logs") / "memory_accesses.jsonl"
_LARGEST_BYTES = 64 << 20  # beyond it nothing is added until upkeep has counted what is there


@dataclass(frozen=True)
class Accesses:
    """How often states were shown, by key, and when last."""

    counts: Counter[str]
    last: dict[str, datetime]


def log_accesses(home: Path | None, state_ids: Sequence[str], at: datetime) -> None:
    """Note that these versions were shown. A home that cannot be written costs the note, never the answer."""
    if home is None or not state_ids:
        return
    line = json.dumps({"at": at.isoformat(), "keys": [key_of(one) for one in state_ids]}) + "\n"
    path = home / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _LARGEST_BYTES:
            return
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError:
        return


def take_accesses(home: Path | None) -> Accesses:
    """All that was noted since the last time, which then counts as taken; lines that cannot be read are left out."""
    taken = Accesses(Counter(), {})
    if home is None or not (home / FILE).exists():
        return taken
    aside = (home / FILE).with_suffix(".counted")
    os.replace(home / FILE, aside)
    for line in aside.read_text(encoding="utf-8").splitlines():
        try:
            noted = json.loads(line)
            at, keys = datetime.fromisoformat(noted["at"]), [str(key) for key in noted["keys"]]
        except (ValueError, KeyError, TypeError):
            continue
        taken.counts.update(keys)
        taken.last.update(dict.fromkeys(keys, at))
    aside.unlink()
    return taken
