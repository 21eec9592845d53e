"""What a call may use: the open graph, the stores, the memory, and who calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.memory.service import Memory
    from hades.ports.store import GraphStore
    from hades.ports.text import Embedder
    from hades.retrieval.answer.context_window import WindowSize
    from hades.retrieval.turn.answers import Answers
    from hades.settings import Settings
    from hades.surfaces.capabilities.capability import JsonReply
    from hades.surfaces.capabilities.query import QueryRequest
    from schemas.telemetry import QueryLog


class CallContext(Protocol):
    """Opened by the surface: lazily for one command, once for all calls of a service."""

    @property
    def settings(self) -> Settings:
        """The settings of this graph."""
        ...

    @property
    def who(self) -> str:
        """The person or program responsible, for histories and audits."""
        ...

    @property
    def answers(self) -> Answers:
        """What answers questions."""
        ...

    @property
    def embedder(self) -> Embedder:
        """What turns text into vectors."""
        ...

    @property
    def readable(self) -> GraphStore:
        """The store, to read."""
        ...

    @property
    def writable(self) -> GraphStore:
        """The store, to write; only for a capability of mode `rw` or `admin`."""
        ...

    @property
    def memory(self) -> Memory:
        """The memory, opened for what the capability may do."""
        ...

    def open_hades(self) -> AbstractContextManager[Hades]:
        """The whole library, to ingest and build."""
        ...

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """Answer a question and log the turn; `version` is the id of a snapshot or a time.

        With a `window`, the prompt holds the question and the paths that fit it.
        """
        ...

    def find_turn(self, query_id: str) -> QueryLog:
        """The log of a turn."""
        ...

    def flush_turns(self) -> None:
        """Wait until every logged turn can be read from the store."""
        ...


OpenContext = Callable[[], AbstractContextManager[CallContext]]
