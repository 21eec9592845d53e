"""What a turn hands over: the answer, what it cost, what it conveys, and under which id it is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from hades.retrieval.answer.assemble import AnswerParts
from hades.retrieval.answer.pack import PackedPrompt
from hades.retrieval.ranking.word_overlap import content_words, forms_of, passage_body, stem
from hades.retrieval.turn.types import FoundPassage, FoundPath, Seed
from hades.telemetry.conveyance import ConveyanceParts, convey
from hades.telemetry.turn import Stage, Turn
from schemas.ids import content_key
from schemas.intervals import Mask, iso
from schemas.plan import Plan
from schemas.retrieval import CitedPassage, Path, RankedItem, Retrieval, StageReport, Telemetry, Tokens, Topic

if TYPE_CHECKING:
    from hades.retrieval.channels.narrow_topics import CandidateGraph


@dataclass(frozen=True)
class AskedQuestion:
    """What was asked, of whom, and when."""

    text: str
    recipe: str
    why: str
    plan: Plan
    mask: Mask
    at: datetime
    near: tuple[str, ...] = ()
    level: str = "passage"
    confidence: float | None = None


@dataclass(frozen=True)
class TurnResult:
    """What the turn came to, in numbers and in words."""

    question: str
    seeds: Sequence[Seed]
    candidates: CandidateGraph | None
    paths: Sequence[FoundPath]
    passages: Sequence[FoundPassage]
    shown: AnswerParts
    packed: PackedPrompt[Path, CitedPassage, Topic]
    bridges: int = 0

    @cached_property
    def words(self) -> tuple[int, int]:
        """How many content words of the question the answer speaks of, and how many it has."""
        said = " ".join(path.text for path in self.shown.paths)
        asked, spoken = ({stem(word) for word in content_words(text)} for text in (self.question, said))
        forms = forms_of(asked, among_content=True)
        spoken.update(*(passage_body(one.title, one.text).find_stems(forms) for one in self.shown.passages))
        return len(asked & spoken), len(asked)


def report(
    asked: AskedQuestion, turn: Turn, snapshot: str, turned: TurnResult, ranking: tuple[RankedItem, ...] = ()
) -> Retrieval:
    """The answer in the shape that programs know."""
    shown, packed = turned.shown, turned.packed
    offered = len(shown.paths) + len(shown.passages)
    measured = ConveyanceParts(
        words=turned.words,
        cited=(shown.cited, shown.facts),
        fitted=(len(packed.paths) + len(packed.passages), min(offered, asked.plan.final_context)),
        ms=(turn.ms, asked.plan.budget.latency_ms),
        wanted=(offered, asked.plan.final_context),
        seeds=(_seeds_shown(turned), len(turned.seeds)),
        stages=turn.stages,
        reach=[path.reliability for path in shown.paths],
    )
    return Retrieval(
        query_id=query_id_of(asked, snapshot),
        query=asked.text,
        recipe=asked.recipe,
        why=asked.why,
        snapshot=snapshot,
        as_of=asked.mask.as_of,
        known_at=asked.mask.known_at,
        reasons=tuple(turn.reasons),
        plan=asked.plan,
        paths=shown.paths,
        passages=shown.passages,
        hierarchy=shown.topics,
        prompt=packed.prompt,
        tokens=Tokens(**packed.tokens),
        telemetry=telemetry_of(turn, _counters(turned)),
        conveyance=convey(measured),
        level=asked.level,
        ranking=ranking,
        confidence=asked.confidence,
    )


def query_id_of(asked: AskedQuestion, snapshot: str) -> str:
    """The id of this question at this moment: the same question asked again later is another turn."""
    mask = [iso(moment) if moment is not None else "" for moment in (asked.mask.as_of, asked.mask.known_at)]
    plan = asked.plan.model_dump_json()
    return content_key("q", snapshot, asked.recipe, asked.text, plan, *mask, iso(asked.at), *asked.near)


def telemetry_of(turn: Turn, counters: dict[str, int]) -> Telemetry:
    """The account of the turn, stage by stage."""
    stages = tuple(_stage_report(stage) for stage in turn.stages)
    if turn.round_trips:
        counters = {**counters, "round_trips": turn.round_trips}
    if turn.approximate_searches:
        counters = {**counters, "approximate_searches": turn.approximate_searches}
    return Telemetry(
        reads=turn.reads_spent,
        ms=round(turn.ms, 3),
        loading_ms=round(turn.loading_ms, 3),
        stages=stages,
        work=turn.work_spent,
        counters=counters,
    )


def _stage_report(stage: Stage) -> StageReport:
    return StageReport(
        name=stage.name,
        reads=stage.reads,
        ms=round(stage.ms, 3),
        taken=stage.taken,
        given=stage.given,
        dedupe_rate=stage.repeats / stage.taken if stage.taken else 0.0,
        coverage=min(1.0, stage.coverage),
        capped=stage.capped,
        early_stop=stage.early_stop,
        work=stage.work,
    )


def _counters(turned: TurnResult) -> dict[str, int]:
    """The counters of requirement C67."""
    candidates = 0 if turned.candidates is None else len(turned.candidates.nodes)
    on_paths = {node for path in turned.paths for node in path.nodes}
    return {
        "candidates": candidates,
        "discarded_nodes": max(0, candidates - len(on_paths)),
        "kept_paths": len(turned.shown.paths),
        "prompt_tokens": turned.packed.tokens["prompt"],
        "bridges": turned.bridges,
        "verified_spans": turned.shown.verified,
        "trimmed_in_prompt": turned.packed.trimmed,
    }


def _seeds_shown(turned: TurnResult) -> int:
    """Seeds that the answer still speaks of: on a path, or shown as a passage."""
    shown = {node for path in turned.paths[: len(turned.shown.paths)] for node in path.nodes}
    shown |= {passage.node for passage in turned.passages[: len(turned.shown.passages)]}
    return sum(seed.node in shown for seed in turned.seeds)
