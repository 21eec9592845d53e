"""MemoryEnhancedPathRAG, EnhancedPathRAG."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar, Self

from hades.cache.tiers import CacheReport, TieredMemoryManager
from hades.compat.functions import check_arguments, describe_paths, describe_prompt
from hades.errors import HadesError, SettingsError
from hades.retrieval.answer import prompt
from hades.retrieval.answer.prompt import ContextWindowManager, WindowSize
from hades.retrieval.answers import Answers
from hades.retrieval.cached_answers import CachedAnswers
from hades.retrieval.core.types import clamp
from hades.retrieval.ranking.select import FlowPruning
from hades.retrieval.walks import flow as scoring
from hades.settings.load import inside, load_settings, nearest, override
from hades.settings.tree import CacheSettings, PathragSettings, Settings
from hades.wiring import open_answers
from schemas.answer import Retrieval
from schemas.plan import HARD_CAPS, Plan, Profile
from schemas.record import JsonObject


class EnhancedPathRAG:
    """Paths and prompts by the names of specification 000, through the tiered cache; without
    `memory` all are computed.

    One reliability serves everything: the turn computes it with the `decay_rate` of the rules,
    drops paths below the `pruning_threshold`, orders by it and reports it; `prune_paths` and
    `calculate_path_score` give the same number.
    """

    def __init__(
        self,
        answers: Answers,
        memory: TieredMemoryManager | None = None,
        rules: PathragSettings | None = None,
        *,
        tenant: str = "",
    ) -> None:
        self.answers = answers
        self.memory_manager = memory
        self.rules = rules or PathragSettings.model_construct()
        self.cached = CachedAnswers(
            answers,
            memory,
            tenant=tenant,
            max_cache_paths=self.rules.max_cache_paths,
        )

    @property
    def recent_queries(self) -> deque[str]:
        """The last ten questions."""
        return self.cached.recent_queries

    def retrieve_paths(
        self,
        query: str,
        max_paths: int = 5,
        domain_filter: str | None = None,
        as_of_version: str | None = None,
        **options: Any,
    ) -> JsonObject:
        """At most `max_paths` paths, most reliable first; none at all is a success with count 0 and
        the reason.

        `tier` says which tier gave them; RAID5 is the graph itself.

        A plan that is given holds as it is. Without one, the plan of the settings is widened to
        twice `max_paths` candidates and to paths of two edges, within the hard caps of its profile.
        `options` are those of a
        turn: `recipe`, `plan`, `as_of`, ...
        """
        return self._ask(
            describe_paths,
            query,
            max_paths,
            domain_filter,
            as_of_version,
            **options,
        )

    def retrieve_and_format(
        self,
        query: str,
        max_paths: int = 5,
        domain_filter: str | None = None,
        as_of_version: str | None = None,
        **options: Any,
    ) -> JsonObject:
        """The prompt for a question. An error, no paths and a prompt are three distinct results.

        No more paths are asked for than the window could hold; the turn writes the prompt so that
        it fits, with passages in the room that paths leave. Without paths it holds passages alone.
        """
        window_tokens = self.rules.context_window_tokens
        path_tokens = window_tokens - self.rules.reserve_tokens
        limit = max(1, path_tokens // self.rules.path_token_estimate)
        return self._ask(
            describe_prompt,
            query,
            max_paths,
            domain_filter,
            as_of_version,
            limit=limit,
            window=WindowSize(window_tokens, self.rules.reserve_tokens),
            **options,
        )

    def calculate_path_score(
        self,
        path: Mapping[str, Any] | None,
        source_node: Mapping[str, Any] | str | None,
        decay_rate: float | None = None,
    ) -> float:
        """Score one path; the decay is that of the settings unless one is given."""
        if decay_rate is None:
            decay = self.rules.decay_rate
        else:
            decay = decay_rate

        return scoring.calculate_path_score(
            path,
            source_node,
            decay,
        )

    def prune_paths(
        self,
        candidate_paths: Sequence[Mapping[str, Any]],
        pruning_threshold: float | None = None,
    ) -> list[JsonObject]:
        """See `hades.retrieval.walks.flow.prune_paths`; threshold and decay are those of the
        settings.
        """
        if pruning_threshold is None:
            threshold = self.rules.pruning_threshold
        else:
            threshold = pruning_threshold

        return scoring.prune_paths(
            candidate_paths,
            threshold,
            decay_rate=self.rules.decay_rate,
        )

    def format_paths_for_prompt(
        self,
        paths: Sequence[Mapping[str, Any]],
        query: str,
    ) -> str:
        """The query, then the paths from the least to the most reliable, inside the window."""
        return prompt.format_paths_for_prompt(
            paths,
            query,
            max_tokens=self.rules.context_window_tokens,
            reserve_tokens=self.rules.reserve_tokens,
            tokenizer=self.answers.tools.tokenizer,
        )

    def report(self) -> CacheReport | None:
        """Hit rate and bytes of every tier; None without a cache."""
        return self.cached.report()

    def close(self) -> None:
        """Write what is in memory to disk and close files and connections."""
        self.cached.close()
        self.answers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        describe: Callable[[str, Retrieval], JsonObject],
        query: str,
        max_paths: int,
        domain: str | None,
        version: str | None,
        *,
        limit: int | None = None,
        plan: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> JsonObject:
        """The one way to an answer, with the flow pruning of the settings as an option of the turn;
        at most `limit` paths.
        """
        try:
            path_count = check_arguments(query, max_paths, domain, version)
            if limit is not None:
                path_count = min(path_count, limit)

            if plan is not None:
                turn_plan = clamp(plan)
            else:
                turn_plan = _widen(self.answers.plan, 2 * path_count)

            turn = self.cached.ask(
                query,
                version=version,
                pruning=FlowPruning(self.rules.decay_rate, self.rules.pruning_threshold),
                plan=turn_plan,
                max_paths=path_count,
                domain=domain,
                **options,
            )
        except HadesError as error:
            return {
                "success": False,
                "query": query,
                "error": str(error),
            }

        return {
            **describe(query, turn.answer),
            "query_id": turn.query_id,
            "tier": turn.tier.name,
        }


JOINING_HOPS = 2  # edges of a path between two things that no edge joins


def _widen(plan: Plan, max_paths: int) -> Plan:
    """The plan with room for this many paths, as far as the hard caps of its profile allow."""
    caps = HARD_CAPS[Profile(plan.profile)]
    widened = plan.model_dump(mode="json")
    widened["graph"]["beam"] = max(plan.graph.beam, min(max_paths, caps.beam))
    widened["graph"]["hops"] = max(plan.graph.hops, min(JOINING_HOPS, caps.hops))
    widened["graph"]["fanout"] = max(plan.graph.fanout, min(max_paths, caps.fanout))
    widened["final_context"] = max(plan.final_context, min(max_paths, caps.final_context))
    return clamp(widened)


_PLACES = ("nvme_cache_path", "reliable_store_path")


class MemoryEnhancedPathRAG(EnhancedPathRAG):
    """Paths from the graph of the settings, through the tiered cache, by the signature that other
    tools call.

    `config` holds any keys of the sections `pathrag:` and `cache:`, flat; what it leaves out comes
    from the settings. Nothing is read and no model is loaded before the first question.
    """

    _shared: ClassVar[dict[str, MemoryEnhancedPathRAG]] = {}
    _lock: ClassVar[Lock] = Lock()

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        settings: Settings | None = None,
        answers: Answers | None = None,
    ) -> None:
        settings = settings or load_settings()
        rules, tiers = _split_config(config or {}, settings)
        if rules.enable_caching:
            memory = TieredMemoryManager(tiers, home=settings.home)
        else:
            memory = None

        super().__init__(
            answers or open_answers(settings),
            memory,
            rules,
            tenant=settings.tenant or "",
        )
        self.config = rules.model_dump() | tiers.model_dump(mode="json")
        if memory is not None:
            self.config |= {
                "nvme_cache_path": str(memory.place.nvme),
                "reliable_store_path": str(memory.place.reliable),
            }

        self.context_manager = ContextWindowManager(
            rules.context_window_tokens,
            rules.reserve_tokens,
            self.answers.tools.tokenizer,
        )

    @classmethod
    def shared(cls, config: Mapping[str, Any] | None = None) -> MemoryEnhancedPathRAG:
        """The one instance of this process for these settings, so that requests share its cache."""
        settings = load_settings()
        name = settings.model_dump_json() + json.dumps(
            dict(config or {}), sort_keys=True, default=str
        )

        with cls._lock:
            if name not in cls._shared:
                cls._shared[name] = cls(config, settings=settings)
            return cls._shared[name]


def _split_config(
    config: Mapping[str, Any],
    settings: Settings,
) -> tuple[PathragSettings, CacheSettings]:
    """The keys by section, merged over the settings; a tenant's folders stay inside its own
    folder.
    """
    known = [*PathragSettings.model_fields, *CacheSettings.model_fields]
    if unknown := [key for key in config if key not in known]:
        raise SettingsError(
            f"MemoryEnhancedPathRAG has no key {unknown[0]!r}{nearest(unknown[0], known)}"
        )

    values = dict(config)
    if settings.tenant is not None:
        for key in _PLACES:
            if values.get(key) is not None:
                values[key] = inside(values[key], settings.tenant)

    rules = {key: value for key, value in values.items() if key in PathragSettings.model_fields}
    tiers = {key: value for key, value in values.items() if key in CacheSettings.model_fields}
    name = "MemoryEnhancedPathRAG"
    return override(settings.pathrag, rules, name), override(settings.cache, tiers, name)
