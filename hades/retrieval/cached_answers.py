"""Answers through the tiered cache: the one answer cache of services and of
`MemoryEnhancedPathRAG`.

An answer is a function of the snapshot and of everything that was asked, and both are in its key: a
hit is never older or wider than the question allows, and a new snapshot starts empty. An answer
that depended on the moment is not cached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from hades.cache.stores import MemoryTier, Scope, TierHit, path_key
from hades.cache.tiers import CacheReport, TieredMemoryManager
from hades.ports.services import utc_now
from hades.retrieval.answers import Answers, is_snapshot_id, retrieve_version
from hades.retrieval.core.types import DEFAULT, NEXUS
from hades.retrieval.core.words import shipped_ranking
from hades.retrieval.turn_result import log_of
from schemas.answer import Retrieval
from schemas.ids import content_key, iso
from schemas.plan import Reason
from schemas.telemetry import QueryLog

RECENT_QUERIES = 10
WITH_PATHS, WITHOUT_PATHS = 0.7, 0.3  # importance of an answer before its use is measured
FORMAT = 4  # of a cached entry; entries of another number are not found
# Reasons of the moment: asked again, the answer may be complete.
PASSING = frozenset(
    {
        Reason.TIMEOUT,
        Reason.EMBEDDER_SLOW,
        Reason.VIEW_DEGRADED,
        Reason.STORE_UNAVAILABLE,
    }
)


@dataclass(frozen=True)
class CachedTurn:
    """An answer as JSON text, its query id, and the tier that gave it; RAID5 is the graph
    itself.
    """

    text: bytes
    query_id: str
    tier: MemoryTier = MemoryTier.RAID5

    @property
    def is_cached(self) -> bool:
        """Whether a tier of the cache gave it."""
        return self.tier is not MemoryTier.RAID5

    @cached_property
    def answer(self) -> Retrieval:
        """The answer as a record."""
        return Retrieval.model_validate_json(self.text)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The answer as plain values."""
        plain: dict[str, Any] = orjson.loads(self.text)
        return plain


class CachedAnswers:
    """Answers questions through the cache. Without `memory` every question is computed.

    `log` receives the log of every turn, also of a cached answer: it has a query id of its own, so
    that it can be explained and judged. `on_answer` receives the answers that were computed.
    """

    def __init__(
        self,
        answers: Answers,
        memory: TieredMemoryManager | None = None,
        *,
        tenant: str = "",
        max_cache_paths: int = 100,
        log: Callable[[QueryLog], None] = lambda log: None,
        on_answer: Callable[[Retrieval], None] = lambda answer: None,
    ) -> None:
        self.answers = answers
        self.memory_manager = memory
        self.recent_queries: deque[str] = deque(maxlen=RECENT_QUERIES)
        self._tenant = tenant
        self._max_paths = max_cache_paths
        self._log = log
        self._on_answer = on_answer

    def ask(self, text: str, *, version: str | None = None, **options: Any) -> CachedTurn:
        """The answer to a question; `options` are those of `Answers.retrieve`, `version` a snapshot
        id or a time.
        """
        hit = self._look_up(text, version, options)
        entry = hit.value

        if isinstance(text, str):
            self.recent_queries.append(text)

        log = QueryLog.model_validate(entry["log"])
        body = entry["answer"].encode()
        if hit.tier is MemoryTier.RAID5:
            self._log(log)
            return CachedTurn(body, log.key, hit.tier)

        at = utc_now()
        query_id = content_key("q", log.key, iso(at))
        self._log(log.model_copy(update={"key": query_id, "at": at}))
        renamed = body.replace(log.key.encode(), query_id.encode(), 1)
        return CachedTurn(renamed, query_id, hit.tier)

    def report(self) -> CacheReport | None:
        """Hit rate and bytes of every tier; None without a cache."""
        if self.memory_manager is None:
            return None
        return self.memory_manager.report()

    def close(self) -> None:
        """Write what is in memory to disk and close the tiers; the answers stay open."""
        if self.memory_manager is not None:
            self.memory_manager.close()

    def _look_up(
        self,
        text: str,
        version: str | None,
        options: dict[str, Any],
    ) -> TierHit:
        """The entry from a tier, else computed. A live graph has no version to key on and is always
        asked.
        """
        memory = self.memory_manager
        compute = partial(self._compute, text, version, options)

        if is_snapshot_id(version):
            snapshot = version
        else:
            snapshot = self.answers.view.info.snapshot

        if memory is None or not isinstance(text, str) or not is_snapshot_id(snapshot):
            return TierHit(compute(), MemoryTier.RAID5)

        assert snapshot is not None
        rights = self._rights_version()
        scope = Scope(
            snapshot,
            memory.place.generation(),
            self._tenant,
        )
        key = path_key(
            text,
            self._params(version, options),
            scope,
        )
        return memory.get_or_compute(
            key,
            compute,
            importance=lambda entry: WITH_PATHS if entry["paths"] else WITHOUT_PATHS,
            context={"recent_queries": [*self.recent_queries, text]},
            keep=lambda entry: (
                entry["is_complete"]
                and entry["log"]["snapshot"] == snapshot
                and self._rights_version() == rights
            ),
        )

    def _rights_version(self) -> str:
        """Which rights hold; an answer that was worked out while they changed is not kept."""
        rights = self.answers.rights
        return "" if rights is None else rights.current().version

    def _params(self, version: str | None, options: dict[str, Any]) -> dict[str, Any]:
        """Everything beside the question and the graph that the answer depends on."""
        tools = self.answers.tools
        params = {
            "recipe": DEFAULT,
            **options,
            "plan": options.get("plan") or self.answers.plan,
        }

        plain = {}
        for name, value in params.items():
            plain[name] = to_jsonable_python(value)

        set_params = {}
        for name, value in plain.items():
            if value not in (None, []):
                set_params[name] = value

        state = {
            "format": FORMAT,
            "version": version,
            "embedder": None if tools.embedder is None else tools.embedder.model.tag,
            "rules": tools.rules.model_dump(mode="json", by_alias=True),
            "memory": None if tools.memory is None else tools.memory.version(),
            "ranking": shipped_ranking().digest,
            "rights": self._rights_version(),
        }
        return set_params | state

    def _compute(
        self,
        text: str,
        version: str | None,
        options: dict[str, Any],
    ) -> dict[str, Any]:
        answer = retrieve_version(
            self.answers,
            text,
            version,
            **options,
        )
        self._on_answer(answer)
        return {
            "answer": answer.model_dump_json(),
            "log": log_of(answer, utc_now()).model_dump(mode="json"),
            "paths": len(answer.paths),
            "is_complete": self._is_complete(answer) and len(answer.paths) <= self._max_paths,
        }

    def _is_complete(self, answer: Retrieval) -> bool:
        """Whether it would be answered the same again: nothing failed or timed out, no feedback
        took part.
        """
        explores = self.answers.tools.swapping.share > 0
        return (
            answer.recipe != NEXUS
            and answer.changes is None  # which are up to now
            and not explores
            and not PASSING & set(answer.reasons)
            and not self._lacks_vector(answer)
        )

    def _lacks_vector(self, answer: Retrieval) -> bool:
        """Whether the embedder failed, so that only words were searched where vectors exist."""
        embedder = self.answers.tools.embedder
        stages = [stage for stage in answer.telemetry.stages if stage.name == "embed"]

        if not stages or stages[0].given or embedder is None:
            return False

        return any(embedder.model.tag in tags for tags in self.answers.view.info.models.values())
