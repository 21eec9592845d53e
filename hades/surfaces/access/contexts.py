"""What a capability may use: the open graph, the stores, the memory, and who calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from hades.cache.stores import MIB
from hades.cache.tiers import TieredMemoryManager
from hades.compat.pathrag import EnhancedPathRAG
from hades.errors import StoreError
from hades.ingest.sources.remote.freshness import with_origins
from hades.ingest.sources.remote.ledger import ledgers
from hades.memory.memory import Memory
from hades.ports.graph import DocumentFilter
from hades.ports.services import Embedder, utc_now
from hades.ports.store import GraphStore, Mode
from hades.retrieval.answer.absence_certificate import written_filters
from hades.retrieval.answers import Answers, retrieve_version
from hades.retrieval.cached_answers import CachedAnswers, CachedTurn
from hades.retrieval.core.types import clamp
from hades.retrieval.turn_result import TurnLog, UnknownQuery, log_of, read_log, write_log
from hades.settings.tree import Settings
from hades.snapshot.rights_file import PUBLIC, Readers, rights_of, within_rights
from hades.surfaces.access.limits import Caller, Door, Limits, Rates, Tokens
from hades.telemetry.logs import Audit
from hades.wiring import (
    open_answers,
    open_briefly,
    open_embedder,
    open_language_model,
    open_memory,
    open_store,
    open_written_store,
)
from schemas.answer import Retrieval, Telemetry
from schemas.plan import Plan, Profile, Reason
from schemas.telemetry import QueryLog

# A build may hold the store for longer; the end of a command does not wait for it.
BUSY_SECONDS = 2.0
# The other profiles are for builds and evaluation.
OFFERED = (Profile.ONLINE, Profile.AGENT, Profile.PATHS, Profile.LONG)

# A caller who may see a part of the corpus asks questions and nothing else.
LIMITED = frozenset({"query", "answer", "retrieve_paths", "retrieve_passages"})


class CallContext:
    """The context of one command or task in this process: everything is opened when it is first
    used.

    `lend_answers` gives the graph that a process keeps open; `logs_turns` writes the turns to the
    store. `limit` is the part of the corpus that the caller may see; None: all of it.
    """

    def __init__(
        self,
        settings: Settings,
        who: str,
        *,
        lend_answers: Callable[[], Answers] | None = None,
        logs_turns: bool = True,
        mode: Mode = Mode.READ_WRITE,
        limit: DocumentFilter | None = None,
        asker: Readers = PUBLIC,
    ) -> None:
        """`asker` are the names that whoever asks reads by; the owner reads all."""
        self.settings = settings
        self.asker = asker
        self.limit = limit_to_rights(settings.home, limit, asker)
        self.who = who
        self._lend_answers = lend_answers
        self._logs_turns = logs_turns
        self._mode = mode
        self._opened = ExitStack()
        self._turns: list[Retrieval] = []

    @cached_property
    def answers(self) -> Answers:
        """What answers questions."""
        if self._lend_answers is not None:
            return self._lend_answers()
        return self._opened.enter_context(open_answers(self.settings, self.embedder))

    @cached_property
    def embedder(self) -> Embedder:
        """What turns text into vectors."""
        return open_embedder(self.settings)

    @cached_property
    def readable(self) -> GraphStore:
        """The store, to read."""
        return self._opened.enter_context(closing(open_store(self.settings, Mode.READ_ONLY)))

    @cached_property
    def writable(self) -> GraphStore:
        """The store, to write; only for a capability of mode `rw` or `admin`."""
        return self._opened.enter_context(closing(open_written_store(self.settings)))

    @cached_property
    def memory(self) -> Memory:
        """The memory, opened for what the capability may do."""
        return self._opened.enter_context(open_memory(self.settings, mode=self._mode))

    @cached_property
    def pathrag(self) -> EnhancedPathRAG:
        """Paths and prompts by the rules of the section `pathrag:`."""
        return EnhancedPathRAG(
            self.answers,
            None,
            self.settings.pathrag,
        )

    def limited(self, only: DocumentFilter | None) -> DocumentFilter | None:
        """A filter with what the caller may see at all."""
        if self.limit is None:
            return only
        return replace(only or DocumentFilter(), within=self.limit)

    def ask(
        self,
        query: str,
        *,
        plan: Mapping[str, Any] | None = None,
        version: str | None = None,
        **options: Any,
    ) -> CachedTurn:
        """Answer a question and log the turn; `version` is the id of a snapshot or a time."""
        options["asker"] = self.asker
        answer = retrieve_version(
            self.answers,
            query,
            version,
            plan=plan,
            **options,
        )

        if self._logs_turns and answer.snapshot:
            self._turns.append(answer)

        answer = with_origins(self.settings.home, answer, utc_now())
        return CachedTurn(answer.model_dump_json().encode(), answer.query_id)

    def find_turn(self, query_id: str) -> QueryLog:
        """The log of a turn; a caller who may see a part of the corpus finds turns that were
        limited to it.
        """
        return self._require_seen(read_log(self.readable, query_id))

    def _require_seen(self, turn: QueryLog) -> QueryLog:
        """The turn, unless it was asked by somebody who sees something else."""
        if self.limit is None:
            return turn
        if turn.results["filters"].get("within") != written_filters(self.limit):
            raise UnknownQuery(f"no query has the id {turn.key!r}; an answer carries its id")

        return turn

    def flush_turns(self) -> str:
        """Write the turns that are not in the store yet; a sentence where another writer holds the
        store.
        """
        turns = self._turns
        self._turns = []

        if not turns:
            return ""

        try:
            with closing(
                open_briefly(
                    self.settings,
                    Mode.READ_WRITE,
                    BUSY_SECONDS,
                )
            ) as store:
                for turn in turns:
                    write_log(store, log_of(turn, utc_now()))
        except StoreError as error:
            return f"The turn was not logged, so it cannot be judged or explained: {error}"

        return ""

    def close(self) -> None:
        """Log the turns and close what was opened."""
        self.flush_turns()
        self._opened.close()


class Service:
    """What a process serves through one door: what it opens once for all calls, tokens, audit, how
    often one may come.

    One that only reads holds no handle that could write (`writable` is None) and writes no cache to
    disk. The cache in RAM is its own.
    """

    def __init__(
        self,
        settings: Settings,
        door: Door,
        limits: Limits = Limits(),
        on_answer: Callable[[Retrieval], None] = lambda answer: None,
    ) -> None:
        self.settings = settings
        self.door = door
        self.limits = limits
        self.tokens = Tokens(settings.home)
        self.audit = Audit(settings.home / "logs")
        self.rates = Rates(limits.per_second, limits.burst)
        writes = door.mode is not Mode.READ_ONLY
        self.writable = open_written_store(settings, door.mode) if writes else None
        self.readable = open_store(settings, Mode.READ_ONLY)
        self.answers = open_answers(settings)
        self.turns = TurnLog(self.readable, self.writable)
        tiers = settings.cache

        if "ram_cache_size_mb" not in tiers.model_fields_set:
            tiers = tiers.model_copy(update={"ram_cache_size_mb": limits.cache_bytes / MIB})

        memory = TieredMemoryManager(
            tiers,
            home=settings.home,
            uses_disk=writes,
        )
        self.cached = CachedAnswers(
            self.answers,
            memory if settings.pathrag.enable_caching else None,
            tenant=settings.tenant or "",
            max_cache_paths=settings.pathrag.max_cache_paths,
            log=self.turns.add,
            on_answer=on_answer,
        )

    def token_caller(self, headers: Mapping[str, str]) -> Caller | None:
        """The owner of the token that a request carries; None where it carries none of this
        home.
        """
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            caller = self.tokens.caller(text.strip())
        else:
            caller = None

        return None if caller is None else self.admit(caller)

    def local_caller(self, name: str, tenant: str | None) -> Caller:
        """Whoever comes through a door without a token."""
        return self.admit(
            Caller(
                name,
                self.door.mode,
                tenant,
                names=self.door.asker,
            )
        )

    def admit(self, caller: Caller) -> Caller:
        """The caller, limited to what they may read where sources state rights."""
        limit = limit_to_rights(
            self.settings.home,
            caller.limit,
            caller.asker,
        )
        return replace(caller, limit=limit)

    def close(self) -> None:
        """Write what is left of the log and the cache, and close everything."""
        for part in (self.turns, self.cached, self.answers, self.readable, self.writable):
            if part is not None:
                part.close()


class ServiceContext(CallContext):
    """The context of one call of a service. A call that only reads never gets a handle that could
    write.
    """

    def __init__(
        self,
        service: Service,
        who: str,
        mode: Mode,
        limit: DocumentFilter | None = None,
        asker: Readers = PUBLIC,
    ) -> None:
        super().__init__(
            service.settings,
            who,
            mode=mode,
            limit=limit,
            asker=asker,
        )
        self._service = service
        self.answers = service.answers
        self.readable = service.readable

        if (embedder := service.answers.tools.embedder) is not None:
            self.embedder = embedder

    @cached_property
    def writable(self) -> GraphStore:
        """The store, to write."""
        assert self._service.writable is not None
        return self._service.writable

    @cached_property
    def memory(self) -> Memory:
        """The memory, opened for what the capability may do."""
        reads = self._mode is Mode.READ_ONLY
        tools = self.answers.tools
        return Memory(
            self.readable if reads else self.writable,
            tools.embedder,
            language_model=None if reads else open_language_model(self.settings),
            tokenizer=tools.tokenizer,
            home=self.settings.home,
        )

    @cached_property
    def pathrag(self) -> EnhancedPathRAG:
        """The same over the cache and the log of this service."""
        rag = EnhancedPathRAG(
            self.answers,
            None,
            self.settings.pathrag,
        )
        rag.cached = self._service.cached
        return rag

    def ask(
        self,
        query: str,
        *,
        plan: Mapping[str, Any] | None = None,
        version: str | None = None,
        **options: Any,
    ) -> CachedTurn:
        """Answer from the cache where possible, within the caps that a service offers."""
        limited = None if plan is None else limit_plan(plan)
        if self.limit is not None:
            options |= {
                "only": self.limited(options.get("only")),
                "near": (),
            }

        options["asker"] = self.asker
        reply = self._service.cached.ask(
            query,
            version=version,
            plan=limited,
            **options,
        )
        if ledgers(self.settings.home):  # how old a source is depends on now, so it is not cached
            answer = with_origins(
                self.settings.home,
                reply.answer,
                utc_now(),
            )
            reply = replace(reply, text=answer.model_dump_json().encode())

        if self.limit is None:
            return reply

        # Nor does a caller who sees a part learn what the rest cost.
        document = {
            **reply.document,
            "telemetry": Telemetry().model_dump(mode="json"),
        }
        return replace(reply, text=orjson.dumps(document))

    def find_turn(self, query_id: str) -> QueryLog:
        """The log of a turn; a caller who may see a part of the corpus finds turns that were
        limited to it.
        """
        return self._require_seen(self._service.turns.find(query_id))

    def flush_turns(self) -> str:
        """Wait until every logged turn can be read from the store."""
        self._service.turns.flush()
        return ""


def limit_to_rights(
    home: Path,
    limit: DocumentFilter | None,
    asker: Readers,
) -> DocumentFilter | None:
    """The part of the corpus that a caller may see; None: all of it."""
    only = within_rights(
        rights_of(home),
        DocumentFilter(within=limit),
        asker,
    )
    return None if only is None else only.within


def limit_plan(plan: Mapping[str, Any]) -> Plan:
    """The plan within the caps that a service offers; a larger profile is lowered to the online
    one.
    """
    # Reasons are the service's to give.
    requested = {}
    for name, part in plan.items():
        if name != "reasons":
            requested[name] = part

    profile = requested.get("profile", Profile.ONLINE)
    if profile in OFFERED or profile not in list(Profile):
        return clamp(requested)

    return clamp(
        {
            **requested,
            "reasons": (Reason.PLAN_CLAMPED,),
        },
        Profile.ONLINE,
    )
