"""Several processes on one file: readers keep reading while one writes; two writers take turns."""

from __future__ import annotations

from pathlib import Path

from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore
from tests.patience import HANG_SECONDS, wait_until
from tests.warm_process import start_program

WRITER = """
import sys, pyarrow as pa
from pathlib import Path
from hades.ports.store import Mode
from hades.stores.sqlite.store import SqliteStore
path, tag, batches, stop = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
store = SqliteStore.open(path, Mode.READ_WRITE)
for number in range(batches):
    if stop.exists():
        break
    names = [f"{tag}{number}_{row}" for row in range(100)]
    rows = {"_key": names, "name": names, "name_lower": names, "type": ["concept"] * 100}
    store.upsert("entities", pa.table(rows))
"""


def test_readers_see_whole_batches_while_a_process_writes(tmp_path: Path, programs: Path) -> None:
    path = tmp_path / "graph.db"
    SqliteStore.open(path, Mode.ADMIN).provision()
    reader = SqliteStore.open(path, Mode.READ_ONLY)
    stop, seen = tmp_path / "stop", set()

    def has_seen_the_writer_at_work() -> bool:
        assert writer.poll() is None
        scanned = sum(batch.num_rows for batch in reader.scan("entities", columns=["_key"]))
        assert scanned % 100 == 0
        seen.add(scanned)
        return len(seen) > 3

    writer = start_program(programs, WRITER, path, "w", 1_000_000, stop)
    try:
        wait_until(has_seen_the_writer_at_work)  # however seldom a busy machine lets it look
    finally:
        stop.touch()
    assert writer.wait(timeout=HANG_SECONDS) == 0
    assert reader.count("entities") % 100 == 0
    assert reader.count("entities") >= max(seen)


def test_two_writers_lose_nothing(tmp_path: Path, programs: Path) -> None:
    path = tmp_path / "graph.db"
    SqliteStore.open(path, Mode.ADMIN).provision()
    never = tmp_path / "stop"
    writers = [start_program(programs, WRITER, path, tag, 15, never) for tag in ("a", "b")]
    assert [writer.wait(timeout=HANG_SECONDS) for writer in writers] == [0, 0]
    store = SqliteStore.open(path, Mode.READ_WRITE)
    assert store.count("entities") == 3_000
    assert store.check() == []
