"""Compare the documentation of two states: answers, contradictions, links, new pages."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from hades.check.cache import GraphCache
from hades.check.links import find_broken_links
from hades.check.pages import State
from hades.check.questions import Asking, QuestionFile
from hades.check.report import CheckReport, Finding, Level
from hades.check.statements import find_contradictions
from hades.retrieval.pipeline import Tools
from hades.snapshot.open import open_snapshot

_LEVELS = list(Level)


def check_states(
    base: State,
    head: State,
    questions: QuestionFile,
    cache: GraphCache,
    open_tools: Callable[[Path], Tools],
    logged: Sequence[str] = (),
) -> CheckReport:
    """What the head broke. `logged` are questions that people asked elsewhere: they say which new
    pages are of use. Graphs are built only where there are questions.
    """
    seconds: dict[str, float] = {}
    began = time.perf_counter()
    findings = [*find_contradictions(base, head), *find_broken_links(base, head)]
    seconds["pages"] = _since(began)

    changed = set()
    for path, _ in base.documents.items() ^ head.documents.items():
        changed.add(path)

    counts = {
        "pages": len(head.documents),
        "changed": len(changed),
        "questions": len(questions.questions),
        "answered": 0,
        "embedded": 0,
    }
    notes = []
    if not base.documents or not head.documents:
        notes.append("no questions were asked: there is no documentation in the base or the head")
    elif not questions.questions:
        notes.append(
            "no questions were asked: `hades check --init` writes an example of questions.yaml"
        )
    elif base.documents == head.documents:
        notes.append("no questions were asked: the documentation did not change")
    else:
        with cache.hold():
            findings += _ask(
                base,
                head,
                questions,
                cache,
                open_tools,
                logged,
                counts,
                seconds,
            )
            cache.trim()

    ordered = sorted(findings, key=_order)
    states = base.commit, head.commit, head.folder
    return CheckReport(
        *states,
        tuple(ordered),
        counts,
        tuple(notes),
        seconds,
    )


def _ask(
    base: State,
    head: State,
    questions: QuestionFile,
    cache: GraphCache,
    open_tools: Callable[[Path], Tools],
    logged: Sequence[str],
    counts: dict[str, int],
    seconds: dict[str, float],
) -> list[Finding]:
    """What became of the answers, and the new pages that none needs; adds to counts and seconds."""
    began = time.perf_counter()
    base_home, base_texts = cache.home_of(base)
    head_home, head_texts = cache.home_of(head, near=base_home)
    counts["embedded"] = base_texts + head_texts
    seconds["graphs"] = _since(began)
    began = time.perf_counter()
    new_pages = _new_pages(base, head)

    with closing(open_snapshot(base_home)) as old, closing(open_snapshot(head_home)) as new:
        asking = Asking(
            questions,
            base,
            head,
            (old, new),
            open_tools(head_home),
        )
        findings = asking.find_changes()
        counts["answered"] = asking.answered

        if new_pages:
            asking.note_shown(logged)
            findings += _find_unasked(head, new_pages, asking.cited)

    seconds["questions"] = _since(began)
    return findings


def _order(finding: Finding) -> tuple[int, str, str, int]:
    return _LEVELS.index(finding.level), finding.rule, finding.path, finding.line


def _new_pages(base: State, head: State) -> list[str]:
    """Documents that the head has and the base had under no name."""
    known = set(base.documents.values())

    pages = []
    for path, blob in head.documents.items():
        if path not in base.documents and blob not in known:
            pages.append(path)

    return pages


def _find_unasked(
    head: State,
    new_pages: Sequence[str],
    cited: set[str],
) -> list[Finding]:
    message = "no question of questions.yaml or of the log is answered from this new page"
    findings = []
    for page in new_pages:
        if page not in cited:
            path = posixpath.join(head.folder, page)
            findings.append(
                Finding(
                    "page-unasked",
                    Level.NOTE,
                    path,
                    1,
                    message,
                )
            )

    return findings


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 2)
