"""An answer from the files of a workspace alone, in the shape of every answer, before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hades.retrieval.answer.assemble import AnswerParts
from hades.retrieval.answer.pack import PackedPrompt, pack
from hades.retrieval.answer.token_counts import QuickCounts
from hades.retrieval.channels.code import CODE, RANKED, rank_level
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.search import CodeHits, search_code
from hades.retrieval.turn.plan import caps_of
from hades.retrieval.turn.report import AskedQuestion, TurnResult, report
from hades.telemetry.turn import Turn
from schemas.ids import content_key, node_id
from schemas.plan import Reason
from schemas.retrieval import CitedPassage, Path, Retrieval, Topic

if TYPE_CHECKING:
    from hades.retrieval.turn.pipeline import Tools


def answer_from_files(index: CodeIndex, asked: AskedQuestion, tools: Tools) -> Retrieval:
    """Files, symbols and units by words, names and history; without paths, topics and vectors, and it says so."""
    plan = asked.plan
    turn = Turn(caps_of(plan), tools.clock)
    turn.because(Reason.NOT_BUILT)
    with turn.stage("code") as stage:
        hits = search_code(index, asked.text, max(plan.reranker.m, RANKED))
        stage.taken, stage.given = len(index.units), len(hits.units)
        stage.coverage = float(bool(hits.units))
    with turn.stage("pack") as stage:
        passages = tuple(_cite(index, hits, plan.final_context))
        shown = AnswerParts((), passages, (), facts=len(passages), cited=len(passages), verified=len(passages))
        counts = QuickCounts(tools.tokenizer)
        packed: PackedPrompt[Path, CitedPassage, Topic] = pack(
            counts, (), passages, (), prompt_tokens=plan.budget.tokens_max, final_context=plan.final_context
        )
        stage.taken, stage.given = len(passages), len(packed.passages)
    turned = TurnResult(asked.text, (), None, (), (), shown, packed)
    return report(asked, turn, "", turned, rank_level(asked.level, hits, passages))


def _cite(index: CodeIndex, hits: CodeHits, limit: int) -> Iterator[CitedPassage]:
    for rank, (row, score) in enumerate(hits.units[:limit], 1):
        unit = index.units[row]
        yield CitedPassage(
            rank=rank,
            id=node_id("doc_chunks", content_key("c", unit.path, unit.text)),
            document=unit.path,
            title=unit.path,
            text=unit.text,
            score=score,
            origins=(CODE,),
            tiers={CODE: score},
            path=unit.path,
            lines=(unit.first_line, unit.last_line),
            symbol=unit.symbol,
            kind=unit.kind,
        )
