"""The context of one command or task in this process: everything is opened when it is first used, and closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from hades.errors import StoreError
from hades.surfaces.capabilities.capability import JsonReply
from hades.surfaces.capabilities.query import QueryRequest, turn_arguments

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.memory.service import Memory
    from hades.ports.progress import Progress
    from hades.ports.store import GraphStore
    from hades.ports.text import Embedder
    from hades.retrieval.answer.context_window import WindowSize
    from hades.retrieval.turn.answers import Answers
    from hades.settings import Settings
    from schemas.retrieval import Retrieval
    from schemas.telemetry import QueryLog

BUSY_SECONDS = 2.0  # a build may hold the store for longer; the end of a command does not wait for it
LOG_SECONDS = 30.0  # a server may not answer


class LocalContext:
    """See `CallContext`. `answers` gives the graph that a process keeps open; `logs_turns` writes the turns."""

    def __init__(
        self,
        settings: Settings,
        who: str,
        *,
        answers: Callable[[], Answers] | None = None,
        progress: Progress | None = None,
        logs_turns: bool = True,
    ) -> None:
        self.settings, self.who, self.progress = settings, who, progress
        self._lent, self._logs_turns = answers, logs_turns
        self._opened = ExitStack()
        self._turns: list[Retrieval] = []

    @cached_property
    def answers(self) -> Answers:
        """See `CallContext.answers`."""
        if self._lent is not None:
            return self._lent()
        from hades.wiring import open_answers

        return self._opened.enter_context(open_answers(self.settings, self.embedder))

    @cached_property
    def embedder(self) -> Embedder:
        """See `CallContext.embedder`."""
        from hades.wiring import open_embedder

        return open_embedder(self.settings)

    @cached_property
    def readable(self) -> GraphStore:
        """See `CallContext.readable`."""
        from hades.ports.store import Mode
        from hades.wiring import open_store

        return self._opened.enter_context(closing(open_store(self.settings, Mode.READ_ONLY)))

    @cached_property
    def writable(self) -> GraphStore:
        """See `CallContext.writable`."""
        from hades.ports.store import Mode
        from hades.wiring import open_store

        return self._opened.enter_context(closing(open_store(self.settings, Mode.READ_WRITE)))

    @cached_property
    def memory(self) -> Memory:
        """See `CallContext.memory`."""
        from hades.wiring import open_memory

        return self._opened.enter_context(open_memory(self.settings))

    def open_hades(self) -> AbstractContextManager[Hades]:
        """See `CallContext.open_hades`."""
        from hades.wiring import open_hades

        return open_hades(self.settings, progress=self.progress)

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """See `CallContext.ask`."""
        if self._lent is None:
            _load_beside(self.embedder)
        from hades.retrieval.versions import retrieve_version

        options = turn_arguments(request)
        found = retrieve_version(self.answers, request.query, version, plan=request.plan, window=window, **options)
        if self._logs_turns and found.snapshot:
            self._turns.append(found)
        return JsonReply(found.model_dump_json().encode(), found.query_id)

    def find_turn(self, query_id: str) -> QueryLog:
        """See `CallContext.find_turn`."""
        from hades.retrieval.turn.query_log import read_log

        return read_log(self.readable, query_id)

    def flush_turns(self) -> None:
        """See `CallContext.flush_turns`."""
        self.log_turns()

    def close(self) -> None:
        """Log the turns and close what was opened."""
        self.log_turns()
        self._opened.close()

    def log_turns(self) -> str:
        """Write the turns that are not in the store yet, unless another writer holds it; a sentence where that failed.

        The answer can be shown before: opening the store to write takes a tenth of the time of a first answer.
        """
        turns, self._turns = self._turns, []
        if not turns:
            return ""
        from hades.ports.clock import utc_now
        from hades.ports.store import Mode
        from hades.retrieval.turn.query_log import log_of, write_log
        from hades.wiring import open_store

        problem: list[str] = [f"the store did not answer within {LOG_SECONDS:g} s"]

        def write() -> None:
            try:
                with closing(open_store(self.settings, Mode.READ_WRITE, BUSY_SECONDS)) as store:
                    for found in turns:
                        write_log(store, log_of(found, utc_now()))
                problem.clear()
            except StoreError as error:
                problem[:] = [str(error)]

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        writer.join(LOG_SECONDS)
        return f"The turn was not logged, so it cannot be judged or explained: {problem[0]}" if problem else ""


def _load_beside(embedder: Embedder) -> None:
    """Load the model in a thread while the caller imports what asks it; a model that cannot load is reported later.

    Not a daemon: a process must not end inside the library that loads.
    """
    from hades.ports.text import LoadsModel, ProviderError

    def load(model: LoadsModel) -> None:
        with suppress(ProviderError):
            model.load()

    if isinstance(embedder, LoadsModel):
        threading.Thread(target=load, args=(embedder,)).start()


@contextmanager
def local_context(
    who: str | None = None, *, settings: Settings | None = None, progress: Progress | None = None
) -> Iterator[LocalContext]:
    """The context of one command; `who` is the user of this session unless named."""
    import getpass

    from hades.settings import load_settings

    context = LocalContext(settings or load_settings(), who or getpass.getuser(), progress=progress)
    try:
        yield context
    finally:
        context.close()
