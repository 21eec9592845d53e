"""Beliefs of a running process: learned from the judged answers in the store, and again when one more is judged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from hades.errors import StoreError
from hades.ports.store import GraphStore

if TYPE_CHECKING:
    from hades.retrieval.ranking.feedback_belief import Beliefs

LOGS = "query_logs"


class StoredBeliefs:
    """Calling it gives what judged answers taught up to now; nothing where no store can be opened.

    The store's mark of the query log says whether a row changed, so an unchanged log is not read again.
    """

    def __init__(self, open_store: Callable[[], GraphStore]) -> None:
        self._open_store = open_store
        self._lock = threading.Lock()
        self._mark: str | None = None
        self._beliefs: Beliefs | None = None

    def __call__(self) -> Beliefs:
        """The beliefs of this moment."""
        from hades.retrieval.ranking.feedback_belief import Beliefs

        with self._lock:
            try:
                with closing(self._open_store()) as store:
                    mark = store.marks([LOGS]).get(LOGS)
                    if mark is None or mark != self._mark:
                        self._beliefs, self._mark = _learn(store), mark
            except StoreError:
                return Beliefs()
            return self._beliefs or Beliefs()


def _learn(store: GraphStore) -> Beliefs:
    from hades.retrieval.ranking.feedback_belief import judgements_in, learn_beliefs

    batches = store.scan(LOGS, columns=["_key", "results", "feedback"])
    return learn_beliefs(judgements_in(row for batch in batches for row in batch.to_pylist()))
