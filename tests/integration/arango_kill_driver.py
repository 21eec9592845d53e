"""Ingests, or builds a night, in processes that the server's side kills, until one ends; prints
JSON.

The embedded store is built first, undisturbed. Each process writes its id to the file `pid`, for
whoever kills it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from hades.api import Hades
from hades.ports.store import Mode
from hades.settings.load import load_settings
from hades.snapshot.publish import publish
from hades.wiring import open_hades, open_store
from tests.homes import settings_of
from tests.integration.drivers import hasten_leases

CITIES = ("Aachen", "Bremen", "Celle", "Dessau", "Erfurt", "Fulda")
NIGHT = datetime(2026, 3, 2, tzinfo=UTC)
COUNTED = (
    "documents",
    "doc_chunks",
    "entities",
    "relations",
    "mentions",
    "clusters",
    "bridge_cache",
    "ingest_manifest",
)


def main(folder: Path, work: str, server: dict[str, str]) -> None:
    """What the undisturbed and the killed store hold at the end, and how many processes were
    killed.
    """
    corpus = folder / "corpus.jsonl"
    rows = [
        {
            "id": f"d{n}",
            "title": city,
            "text": f"{city} is a town. {city} lies on the road to {CITIES[n - 1]}.",
        }
        for n, city in enumerate(CITIES)
    ]
    corpus.write_text("\n".join(map(json.dumps, rows)))
    do = ingest if work == "ingest" else build
    run(lambda: do(corpus, folder / "embedded", {}))
    open_store(
        load_settings({"HADES_HOME": str(folder / "server"), **server}, folder), Mode.ADMIN
    ).provision()
    hasten_leases(12)
    kills = 0
    while not run(lambda: do(corpus, folder / "server", server)):
        kills += 1
    held = {
        name: json.loads((folder / name / "held.json").read_text())
        for name in ("embedded", "server")
    }
    sys.stdout.write(json.dumps({"kills": kills, **held}))


def run(work: Callable[[], None]) -> bool:
    """Do it in a process of its own; False where it was killed."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status and not os.WIFSIGNALED(status):
        sys.exit(f"a process ended with status {status}")
    return not status


def ingest(corpus: Path, home: Path, server: dict[str, str]) -> None:
    """Ingest and publish."""
    with begin(home, server) as hades:
        hades.ingest.passages(corpus)
        held = hades.store.counts()
        tell(home, publish(hades.store, home).manifest_hash, held)


def build(corpus: Path, home: Path, server: dict[str, str]) -> None:
    """Ingest and one night."""
    with begin(home, server) as hades:
        hades.ingest.passages(corpus)
        snapshot = hades.build(as_of=NIGHT)["released"]["snapshot"]
        tell(home, snapshot, hades.store.counts())


def begin(home: Path, server: dict[str, str]) -> Hades:
    """Write this process's id, make the embedded store where there is no server, and open it."""
    settings = settings_of(home, **server)
    home.mkdir(parents=True, exist_ok=True)
    (home / "pid").write_text(str(os.getpid()))
    if not server:
        open_store(settings, Mode.ADMIN).provision()
    return open_hades(settings)


def tell(home: Path, snapshot: str, held: dict[str, int]) -> None:
    (home / "held.json").write_text(
        json.dumps({"snapshot": snapshot, **{name: held[name] for name in COUNTED}})
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
