"""Turns that were answered, kept so that they can be explained and judged.

Who may write puts them into `query_logs` from one thread, many rows to a transaction: no question waits for the store.
Who may only read keeps the last turns in memory and writes nothing. Closing, and the end of the process, write what is
left.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from collections import OrderedDict

from hades.errors import StoreError
from hades.ports.store import RowStore
from hades.retrieval.turn.query_log import QUERY_LOGS, read_log
from schemas.columns import to_table
from schemas.telemetry import QueryLog

logger = logging.getLogger(__name__)

_REMEMBERED = 2000
_WAITING = 10_000
_BATCH = 256


class TurnLog:
    """Remembers turns; with a `writable` store, also keeps them there.

    Where the store falls far behind, a service drops turns and counts them; with `may_drop=False` the next turn waits.
    """

    def __init__(self, readable: RowStore, writable: RowStore | None = None, *, may_drop: bool = True) -> None:
        self._readable, self._writable, self._may_drop = readable, writable, may_drop
        self._recent: OrderedDict[str, QueryLog] = OrderedDict()
        self._lock = threading.Lock()
        self._queue: queue.Queue[QueryLog | None] = queue.Queue(_WAITING)
        self._writer: threading.Thread | None = None
        self.dropped = 0
        if writable is not None:
            self._writer = threading.Thread(target=self._write, name="hades-turn-log", daemon=True)
            self._writer.start()
            atexit.register(self.flush)

    def add(self, log: QueryLog) -> None:
        """Remember a turn; it is written soon."""
        with self._lock:
            self._recent[log.key] = log
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        if self._writer is not None:
            try:
                self._queue.put(log, block=not self._may_drop)
            except queue.Full:
                self.dropped += 1

    def find(self, query_id: str) -> QueryLog:
        """The turn of an id, or `UnknownQuery`."""
        with self._lock:
            log = self._recent.get(query_id)
        return log if log is not None else read_log(self._readable, query_id)

    def flush(self) -> None:
        """Wait until everything added so far was written or given up."""
        if self._writer is not None and self._writer.is_alive():
            self._queue.join()

    def close(self) -> None:
        """Write what is left and stop."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
            atexit.unregister(self.flush)

    def _write(self) -> None:
        while True:
            batch = [self._queue.get()]
            while len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            try:
                self._store([log for log in batch if log is not None])
            finally:
                for _ in batch:
                    self._queue.task_done()
            if None in batch:
                return

    def _store(self, logs: list[QueryLog]) -> None:
        assert self._writable is not None
        rows = {log.key: log for log in logs}  # the same question twice in a microsecond has one id
        if not rows:
            return
        try:
            self._writable.upsert(QUERY_LOGS, to_table(QueryLog, [rows[key] for key in sorted(rows)]))
        except StoreError as error:  # an answer is worth more than its log
            self.dropped += len(rows)
            logger.warning("%d turns were answered but not logged, so they cannot be judged: %s", len(rows), error)
