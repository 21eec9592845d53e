"""A page over `query_logs`: what questions cost, where the time goes, what was cut and what was conveyed (B54)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean, quantiles
from typing import TYPE_CHECKING, Any

import orjson

from hades.reports import page
from hades.reports.charts import Bar, waterfall
from schemas.intervals import iso
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.ports.store import RowStore

NEWEST = 50  # questions listed one by one


@dataclass(frozen=True)
class LoggedQuestion:
    """One row of the log, parsed."""

    key: str
    query: str
    recipe: str
    at: datetime
    reasons: tuple[str, ...]
    telemetry: dict[str, Any]
    conveyance: dict[str, Any]

    @property
    def ms(self) -> float:
        """Milliseconds of the turn."""
        return float(self.telemetry["ms"])


def write_dashboard(store: RowStore, path: Path, since: datetime | None = None) -> dict[str, Any]:
    """Write the page and return its figures; questions before `since` are left out."""
    asked = sorted(read_asked(store, since), key=lambda one: (one.at, one.key), reverse=True)
    figures = summary(asked)
    lead = f"{len(asked)} questions" + (f" since {iso(since)}" if since is not None else "")
    body = [_tiles(figures), *_sections(asked, figures)] if asked else ["<p>No question has been logged yet.</p>"]
    page.write(path, "Questions", lead, body, "Written from query_logs; reasons and formulas: docs/retrieval.md")
    return {"path": str(path), **figures}


def read_asked(store: RowStore, since: datetime | None = None) -> Iterable[LoggedQuestion]:
    """The log, parsed."""
    from hades.ports.store import Term

    where = [] if since is None else [Term("at", ">=", since)]
    columns = ["_key", "query", "recipe", "at", "reasons", "telemetry", "conveyance"]
    for batch in store.scan("query_logs", where=where, columns=columns):
        for row in batch.to_pylist():
            yield LoggedQuestion(
                row["_key"], row["query"], row["recipe"], row["at"], tuple(row["reasons"] or ()),
                orjson.loads(row["telemetry"]), orjson.loads(row["conveyance"]),
            )  # fmt: skip


def summary(asked: Sequence[LoggedQuestion]) -> dict[str, Any]:
    """The figures of the page: latency, reads, reasons, stages, and W * R * H against T by recipe."""
    by_recipe: dict[str, list[LoggedQuestion]] = {}
    for one in asked:
        by_recipe.setdefault(one.recipe, []).append(one)
    return {
        "questions": len(asked),
        "ms": _spread([one.ms for one in asked]),
        "reads": _spread([float(one.telemetry["reads"]) for one in asked]),
        "reasons": dict(sorted(Counter(code for one in asked for code in one.reasons).items())),
        "stages": _stages(asked),
        "recipes": {name: _recipe(own) for name, own in sorted(by_recipe.items())},
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"mean": 0.0, "p50": 0.0, "p95": 0.0, "max": 0.0}
    cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else [values[0]] * 19
    return {"mean": fmean(values), "p50": cuts[9], "p95": cuts[18], "max": max(values)}


def _stages(asked: Sequence[LoggedQuestion]) -> dict[str, dict[str, float]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in asked:
        for stage in one.telemetry["stages"]:
            found.setdefault(stage["name"], []).append(stage)
    columns = ("ms", "reads", "coverage", "dedupe_rate", "capped", "early_stop")
    return {
        name: {column: fmean(float(one[column]) for one in own) for column in columns} for name, own in found.items()
    }


def _recipe(asked: Sequence[LoggedQuestion]) -> dict[str, float]:
    parts = [one.conveyance for one in asked]
    return {
        "questions": float(len(asked)),
        "p95_ms": _spread([one.ms for one in asked])["p95"],
        "WRH": fmean(part["W"] * part["R"] * part["H"] for part in parts),
        "T": fmean(part["T"] for part in parts),
        "Ctx": fmean(part["Ctx"]["value"] for part in parts),
        "C": fmean(part["C"] for part in parts),
    }


def _tiles(figures: dict[str, Any]) -> str:
    ms, reads = figures["ms"], figures["reads"]
    return page.tiles(
        [
            (page.number(figures["questions"]), "questions", ""),
            (page.seconds(ms["p50"] / 1000), "half answered within", ""),
            (page.seconds(ms["p95"] / 1000), "95 of 100 answered within", "good" if ms["p95"] <= 2000 else "bad"),
            (f"{reads['mean']:.0f}", "documents read on average", ""),
            (f"{reads['max']:.0f}", "documents read at most", ""),
        ]
    )


def _sections(asked: Sequence[LoggedQuestion], figures: dict[str, Any]) -> list[str]:
    stages = figures["stages"]
    timing = waterfall("Time of each stage", [Bar(name, own["ms"] / 1000) for name, own in stages.items()])
    per_stage = page.table(
        ("stage", "ms", "reads", "coverage", "repeats", "capped", "stopped early"),
        [
            (page.escape(name), f"{own['ms']:.1f}", f"{own['reads']:.1f}",
             *(f"{own[column]:.0%}" for column in ("coverage", "dedupe_rate", "capped", "early_stop")))
            for name, own in stages.items()
        ],
        numeric=range(1, 7),
    )  # fmt: skip
    about = {str(reason): reason.about for reason in Reason}
    reasons = page.table(
        ("reason", "questions", "meaning"),
        [(page.escape(code), page.number(count), page.escape(about.get(code, "")))
         for code, count in figures["reasons"].items()],
        numeric=(1,),
    )  # fmt: skip
    recipes = page.table(
        ("recipe", "questions", "p95 ms", "W·R·H", "T", "Ctx", "C"),
        [(page.escape(name), page.number(own["questions"]), f"{own['p95_ms']:.1f}",
          *(f"{own[column]:.3f}" for column in ("WRH", "T", "Ctx", "C")))
         for name, own in figures["recipes"].items()],
        numeric=range(1, 7),
    )  # fmt: skip
    newest = page.table(
        ("asked", "question", "recipe", "ms", "reads", "reasons"),
        [(page.escape(iso(one.at)[:19]), page.escape(one.query), page.escape(one.recipe), f"{one.ms:.1f}",
          page.number(one.telemetry["reads"]), page.escape(", ".join(one.reasons)))
         for one in asked[:NEWEST]],
        numeric=(3, 4),
    )  # fmt: skip
    return [
        page.section("Stages", "Mean of all questions; reads count against docs_max.", timing, per_stage),
        page.section("Conveyance", "What reached the reader (W·R·H) against the time it took (T).", recipes),
        page.section("Reasons", "Why turns stopped, trimmed or fell back.", reasons),
        page.section("Newest questions", f"The last {min(NEWEST, len(asked))}.", newest),
    ]
