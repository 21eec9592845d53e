"""Paths with a memory: fetched twice as many as asked for, pruned by flow, cut, and kept for the next who asks.

What is kept is the answer after pruning, under a key that names the snapshot, the version and time asked for, and every
limit it was computed under. So a hit is never wider, older or less pruned than the question allows, and a new snapshot
starts with nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from hades.cache.keys import Scope, path_key
from hades.cache.report import CacheReport
from hades.cache.tier import Found, MemoryTier
from hades.cache.tiers import TieredMemoryManager
from hades.errors import HadesError
from hades.retrieval.answer import prompt
from hades.retrieval.functions import Failed, FoundPaths, FoundPrompt, is_snapshot_id, retrieved
from hades.retrieval.ranking import path_score as scoring
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.pipeline import BadQuestion
from hades.retrieval.turn.plan import clamp
from hades.retrieval.turn.recipes import DEFAULT, RECIPES, GraphStep
from hades.settings.cache import PathragSettings
from schemas.plan import HARD_CAPS, Plan, Profile, Reason
from schemas.retrieval import Path, Retrieval

RECENT = 10
WITH_PATHS, WITHOUT = 0.7, 0.3  # what the importance of an answer starts from (A71)
SHAPE = 1  # of what is kept; another number lets older entries go unfound
_PASSING = (Reason.TIMEOUT, Reason.VIEW_DEGRADED)  # an answer cut by these would be better on another day


class RememberedPaths(FoundPaths):
    """Paths for a question, and the tier that gave them; RAID5 is the graph itself."""

    tier: str


class RememberedPrompt(FoundPrompt):
    """The prompt for a question, and the tier that gave its paths."""

    tier: str


@dataclass(frozen=True)
class Asked:
    """A question with everything its answer depends on beside the graph."""

    query: str
    max_paths: int
    domain: str | None
    version: str | None
    recipe: str
    plan: Plan
    as_of: datetime | None
    known_at: datetime | None


class EnhancedPathRAG:
    """Answers with paths, through tiers of memory. Without `memory` every question is computed."""

    def __init__(
        self,
        answers: Answers,
        memory: TieredMemoryManager | None = None,
        rules: PathragSettings | None = None,
        *,
        tenant: str = "",
    ) -> None:
        self.answers, self.memory_manager = answers, memory
        self.rules = rules or PathragSettings.model_construct()
        self.recent_queries: deque[str] = deque(maxlen=RECENT)
        self._tenant = tenant

    def retrieve_paths(
        self,
        query: str,
        max_paths: int = 5,
        domain_filter: str | None = None,
        as_of_version: str | None = None,
        *,
        recipe: str = DEFAULT,
        plan: Mapping[str, Any] | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> RememberedPaths | Failed:
        """At most `max_paths` paths, most reliable first; none at all is a success with count 0 and the reason.

        Twice as many are fetched, pruned by what flows along them, sorted and cut. A plan that is given holds as it is;
        without one, the settings' plan is widened to so many candidates within its profile's hard caps.
        """
        self.recent_queries.append(query)
        try:
            asked = self._asked(query, max_paths, domain_filter, as_of_version, recipe, plan, as_of, known_at)
            found = self._remembered(asked)
        except HadesError as error:
            return {"success": False, "query": query, "error": str(error)}
        entry = found.value
        return {
            "success": True,
            "query": query,
            "paths": entry["paths"],
            "count": len(entry["paths"]),
            "pruned_from": entry["pruned_from"],
            "reason": None if entry["paths"] else str(Reason.NO_PATHS),
            "reasons": entry["reasons"],
            "query_id": entry["query_id"],
            "snapshot": entry["snapshot"],
            "tier": found.tier.name,
        }

    def retrieve_and_format(
        self,
        query: str,
        max_paths: int = 5,
        domain_filter: str | None = None,
        as_of_version: str | None = None,
        **asked: Any,
    ) -> RememberedPrompt | Failed:
        """The prompt for a question: an error, no paths and a prompt are three results that cannot be mistaken (X-23).

        No more paths are asked for than the window could hold, and the prompt is written anew each time: whatever a
        tier gave, it fits.
        """
        room = (self.rules.context_window_tokens - self.rules.reserve_tokens) // self.rules.path_token_estimate
        found = self.retrieve_paths(query, min(max_paths, max(1, room)), domain_filter, as_of_version, **asked)
        if not found["success"]:
            return found
        try:
            text = self.format_paths_for_prompt(found["paths"], query) if found["paths"] else ""
        except ValueError as error:  # the question alone is longer than the window
            return {"success": False, "query": query, "error": str(error)}
        tokens = self.answers.tools.tokenizer.count(text)
        return {
            "success": True,
            "query": query,
            "formatted_prompt": text,
            "count": found["count"],
            "reason": found["reason"],
            "reasons": found["reasons"],
            "tokens": {"prompt": tokens, "hierarchy": 0, "paths": tokens},
            "query_id": found["query_id"],
            "snapshot": found["snapshot"],
            "tier": found["tier"],
        }

    def calculate_path_score(
        self,
        path: Mapping[str, Any] | None,
        source_node: Mapping[str, Any] | str | None,
        decay_rate: float | None = None,
    ) -> float:
        """Score one path; the decay is that of the settings unless one is given."""
        return scoring.calculate_path_score(
            path, source_node, self.rules.decay_rate if decay_rate is None else decay_rate
        )

    def prune_paths(
        self, candidate_paths: Sequence[Mapping[str, Any]], pruning_threshold: float | None = None
    ) -> list[dict[str, Any]]:
        """See `hades.retrieval.ranking.path_score.prune_paths`; threshold and decay are those of the settings."""
        threshold = self.rules.pruning_threshold if pruning_threshold is None else pruning_threshold
        return scoring.prune_paths(candidate_paths, threshold, decay_rate=self.rules.decay_rate)

    def format_paths_for_prompt(self, paths: Sequence[Mapping[str, Any]], query: str) -> str:
        """The query, then the paths from the least to the most reliable, inside the window (A60, A61)."""
        return prompt.format_paths_for_prompt(
            paths,
            query,
            max_tokens=self.rules.context_window_tokens,
            reserve_tokens=self.rules.reserve_tokens,
            tokenizer=self.answers.tools.tokenizer,
        )

    def report(self) -> CacheReport | None:
        """Hit rate and bytes of every tier; None when nothing is kept."""
        return None if self.memory_manager is None else self.memory_manager.report()

    def close(self) -> None:
        """Put what is in memory on disk and give back files and connections."""
        if self.memory_manager is not None:
            self.memory_manager.close()
        self.answers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _asked(
        self,
        query: str,
        max_paths: int,
        domain: str | None,
        version: str | None,
        recipe: str,
        plan: Mapping[str, Any] | None,
        as_of: datetime | None,
        known_at: datetime | None,
    ) -> Asked:
        if max_paths < 1:
            raise BadQuestion(f"max_paths is {max_paths}; ask for at least 1")
        chosen = clamp(plan) if plan is not None else _wide_enough(self.answers.plan, max_paths)
        return Asked(query, max_paths, domain, version, recipe, chosen, as_of, known_at)

    def _remembered(self, asked: Asked) -> Found:
        """The answer from a tier, else from the graph. A live graph has no version to key on and is always asked."""
        snapshot = asked.version if is_snapshot_id(asked.version) else self._serving()
        if self.memory_manager is None or snapshot is None or not is_snapshot_id(snapshot):
            return Found(self._computed(asked), MemoryTier.RAID5)
        scope = Scope(snapshot, self.memory_manager.place.generation(), self._tenant)
        return self.memory_manager.get_or_compute(
            path_key(asked.query, self._params(asked), scope),
            lambda: self._computed(asked),
            importance=lambda entry: WITH_PATHS if entry["paths"] else WITHOUT,
            context={"recent_queries": list(self.recent_queries)},
            keep=lambda entry: self._is_worth_keeping(entry, snapshot),
        )

    def _serving(self) -> str:
        with self.answers.lease() as view:
            return view.info.snapshot

    def _params(self, asked: Asked) -> dict[str, Any]:
        """Everything beside the question and the graph that the answer depends on."""
        tools = self.answers.tools
        return {
            "shape": SHAPE,
            "max_paths": asked.max_paths,
            "domain_filter": asked.domain,
            "as_of_version": asked.version,
            "recipe": asked.recipe,
            "plan": asked.plan.model_dump(mode="json"),
            "as_of": None if asked.as_of is None else asked.as_of.isoformat(),
            "known_at": None if asked.known_at is None else asked.known_at.isoformat(),
            "decay_rate": self.rules.decay_rate,
            "pruning_threshold": self.rules.pruning_threshold,
            "embedder": None if tools.embedder is None else tools.embedder.model.tag,
            "rules": tools.rules.model_dump(mode="json", by_alias=True),
        }

    def _computed(self, asked: Asked) -> dict[str, Any]:
        """Fetch, prune, sort, cut (A67)."""
        found = retrieved(
            self.answers, asked.query, 2 * asked.max_paths, asked.domain, asked.version, asked.recipe, asked.plan,
            asked.as_of, asked.known_at,
        )  # fmt: skip
        kept = self.prune_paths([_scorable(path) for path in found.paths])[: asked.max_paths]
        return {
            "paths": [
                {**one["found"], "rank": rank, "reliability": one["reliability"]} for rank, one in enumerate(kept, 1)
            ],
            "pruned_from": len(found.paths),
            "reasons": [str(reason) for reason in found.reasons],
            "query_id": found.query_id,
            "snapshot": found.snapshot,
            "is_whole": self._is_whole(found),
        }

    def _is_whole(self, found: Retrieval) -> bool:
        """Whether it would be answered the same again: nothing failed or ran out of time, no feedback took part."""
        learns = found.recipe in RECIPES and RECIPES[found.recipe].step is GraphStep.FUSION
        changes = learns or self.answers.tools.swapping.share > 0
        return not changes and not self._lost_its_vector(found) and not set(_PASSING) & set(found.reasons)

    def _lost_its_vector(self, found: Retrieval) -> bool:
        """Whether the embedder failed, so that words alone were searched where vectors are."""
        embedding = next((stage for stage in found.telemetry.stages if stage.name == "embed"), None)
        embedder = self.answers.tools.embedder
        if embedding is None or embedding.given or embedder is None:
            return False
        with self.answers.lease() as view:
            return any(embedder.model.tag in tags for tags in view.info.models.values())

    def _is_worth_keeping(self, entry: Mapping[str, Any], snapshot: str) -> bool:
        """Not what a slow moment cut short, what a snapshot published meanwhile said, or more paths than are kept."""
        few = len(entry["paths"]) <= self.rules.max_cache_paths
        return few and bool(entry["is_whole"]) and entry["snapshot"] == snapshot


def _wide_enough(plan: Plan, max_paths: int) -> Plan:
    """The plan with room for twice as many candidates, as far as its profile's hard caps allow."""
    caps = HARD_CAPS[Profile(plan.profile)]
    raw = plan.model_dump(mode="json")
    raw["graph"]["beam"] = max(plan.graph.beam, max_paths, min(2 * max_paths, caps.beam))
    raw["final_context"] = max(plan.final_context, max_paths, min(2 * max_paths, caps.final_context))
    return clamp(raw)


def _scorable(path: Path) -> dict[str, Any]:
    """A path as scoring reads it: edges in the direction in which they were walked, and how many leave each vertex."""
    steps = zip(path.nodes, path.nodes[1:], path.edges, strict=False)
    return {
        "vertices": [{"_id": node.id, "deg_out": node.deg_out} for node in path.nodes],
        "edges": [{"_from": tail.id, "_to": head.id, "weight": edge.weight} for tail, head, edge in steps],
        "found": path.model_dump(mode="json"),
    }
