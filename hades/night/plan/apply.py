"""Apply a plan: take its rows over, publish them, and refuse where anything moved on since."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from hades.errors import ContractBroken, PlanOutdated, StoreError
from hades.ingest.manifest import known
from hades.night.context import BuildContext
from hades.night.plan import folder as plans
from hades.night.plan.inputs import describe_moves, read_inputs
from hades.night.plan.page import write_page
from hades.night.release.publish import release
from hades.night.report import write_reports
from hades.night.stage import KEEP_SNAPSHOTS, Night, Report
from hades.ports.services import utc_now
from hades.settings.tree import Settings
from schemas.ids import iso
from schemas.record import JsonObject
from schemas.sources import SourceSpec


def apply_plan(
    context: BuildContext,
    settings: Settings,
    folder: Path,
    keep: int = KEEP_SNAPSHOTS,
) -> JsonObject:
    """Make the store and the graph that serves what the plan says; what it did.

    Rows change in one transaction. No text is embedded and no model is asked: the plan did. A plan
    that was killed after its rows were taken over goes on with publishing.
    """
    began = time.time()
    plan = plans.read_plan(folder)
    _refuse(context, settings, plan)

    if not plan["changes"]:
        return _report(
            plan,
            began,
            {"snapshot": plan["before"]},
            "",
        )

    _take_over(context, folder, plan)
    night = Night(
        datetime.fromisoformat(plan["as_of"]),
        began,
        keep=keep,
        learns=False,
    )
    still = replace(context, open_tools=None)  # standing questions were asked by the plan
    released = {
        **release(still, night.as_of, keep),
        "standing": plan["standing"],
    }
    released["took"] = round(time.time() - began, 3)
    page = write_reports(
        context,
        night,
        {
            **plan["report"],
            "released": released,
        },
    )
    _mark_applied(folder, plan)
    return _report(plan, began, released, str(page))


def _refuse(
    context: BuildContext,
    settings: Settings,
    plan: Report,
) -> None:
    """Raise where the plan cannot be done as it says, naming what is in the way."""
    name = plan["plan"]
    if plan["applied"]:
        raise PlanOutdated(f"{name} was applied at {plan['applied']}; make another: `hades plan`")

    broken = [rule["rule"] for rule in plan["contracts"]["broken"]]
    if broken:
        raise ContractBroken(
            f"{name} would break {', '.join(broken)}, expected every rule to hold; nothing was "
            "changed: repair the source or the rule, then plan again"
        )

    specs = [SourceSpec(**spec) for spec in plan["specs"]] or known(context.store)
    now = read_inputs(
        context.store,
        context.home,
        settings,
        specs,
    )
    if moves := describe_moves(plan["inputs"], now):
        _raise_outdated(name, "; ".join(moves))


def _take_over(
    context: BuildContext,
    folder: Path,
    plan: Report,
) -> None:
    """Change the rows of the store as planned."""
    if context.state is None:
        raise StoreError(
            f"{plan['plan']} is a plan of an embedded store; expected HADES_STORE=sqlite, with "
            "which it was made"
        )

    try:
        context.state.replay(folder / plans.CHANGES, plan["marks"])
    except PlanOutdated as moved:
        _raise_outdated(plan["plan"], str(moved))


def _raise_outdated(name: str, moves: str) -> None:
    raise PlanOutdated(
        f"{name} is of a state that is no more: {moves}; nothing was changed: look at a new plan "
        "(`hades plan`) and apply that"
    )


def _mark_applied(folder: Path, plan: JsonObject) -> None:
    """Keep what was planned, without the rows, which the store has now."""
    plan["applied"] = iso(utc_now())
    plans.write_plan(folder, plan)
    write_page(folder / plans.PAGE, plan)
    (folder / plans.CHANGES).unlink()


def _report(
    plan: Report,
    began: float,
    released: Report,
    page: str,
) -> JsonObject:
    """What was applied, and whether what serves is what was planned."""
    return {
        "plan": plan["plan"],
        "snapshot": released["snapshot"],
        "as_planned": released["snapshot"] == plan["after"],
        "rows": plan["rows"]["collections"],
        "embedded": 0,
        "calls": 0,
        "seconds": round(time.time() - began, 3),
        "report": page,
    }
