"""What a person can do about each reason of an answer: for the reference, and for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemas.plan import Reason

ACTIONS = {
    Reason.CAP_EXCEEDED: "Mostly nothing. Raise the cap in `plan:` of `hades.yaml` where answers miss something.",
    Reason.COVERAGE_REACHED: "Nothing: it saved time.",
    Reason.TIMEOUT: "Ask again on a less busy machine, or raise `budget.latency_ms` and the stage's `timeout_ms`.",
    Reason.BUDGET_DOCS: "Raise `budget.docs_max`, or ask a narrower question.",
    Reason.PLAN_CLAMPED: "Lower the plan to its caps, or use a profile with higher ones (`long`).",
    Reason.NO_ENTITY_MATCH: "Name a thing as the corpus spells it; `hades overview` lists names.",
    Reason.NO_PATHS: "Read the passages; raise `graph.hops` to 2 where a path is needed.",
    Reason.HIERARCHY_UNAVAILABLE: "Run `hades build`, which builds the topics.",
    Reason.EMBEDDINGS_MISSING: "Run `hades build`.",
    Reason.ANALYZER_MISMATCH: "Run `hades provision` with the admin credential.",
    Reason.VIEW_DEGRADED: "Run `hades doctor`; publish again with `hades publish`.",
    Reason.NOT_BUILT: "`hades ingest workspace PATH` and `hades build` add vectors, paths and topics.",
    Reason.RANKER_UNAVAILABLE: "Nothing: weights rank. `hades run train_ranker` fits a new one.",
    Reason.ABSTAINED: "Look at the nearest passages with `hades query`; bring documents that hold the answer.",
}
# Shown under an answer; the others describe an ordinary turn, or nothing follows from them.
SHOWN = (
    Reason.TIMEOUT,
    Reason.BUDGET_DOCS,
    Reason.PLAN_CLAMPED,
    Reason.HIERARCHY_UNAVAILABLE,
    Reason.EMBEDDINGS_MISSING,
    Reason.ANALYZER_MISMATCH,
    Reason.VIEW_DEGRADED,
    Reason.NOT_BUILT,
    Reason.ABSTAINED,
)


def explain_reasons(codes: Iterable[str]) -> Iterator[str]:
    """A sentence and what to do, for each reason that a person can act on."""
    told = set(codes)
    for reason in SHOWN:
        if reason in told:
            yield f"{reason.about[0].upper()}{reason.about[1:]}. {ACTIONS[reason].replace('`', '')}"
