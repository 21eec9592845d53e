"""Make a plan: build the next state beside the graph, by the stages of the night, and keep what
differs.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from hades import ranker_files
from hades.errors import ContractBroken, StoreError
from hades.files import make_private_folder
from hades.ingest.ingest import Ingest
from hades.ingest.manifest import known
from hades.night.context import BuildContext
from hades.night.contracts import own
from hades.night.contracts.check import check_contract, check_contracts
from hades.night.contracts.rule import ContractResult
from hades.night.history import built_after_served
from hades.night.plan import folder as plans
from hades.night.plan.cost import cost_of
from hades.night.plan.describe import describe_changes
from hades.night.plan.inputs import read_inputs, store_marks
from hades.night.plan.page import write_page
from hades.night.stage import Night, NightStage, begin
from hades.night.stages import run_night, run_stage, timed
from hades.night.standing import check_required, check_standing, list_standing
from hades.ports.services import PaidModels
from hades.ports.store import RowChange, StateFile
from hades.retrieval.pipeline import Tools
from hades.settings.tree import Settings
from hades.snapshot.open import open_folder, open_former
from hades.snapshot.pointer import served
from hades.snapshot.publish import publish
from schemas.ids import iso
from schemas.record import JsonObject
from schemas.sources import SourceSpec

WITHOUT_PLAN = (
    "`hades build --dry-run`, or plan on an embedded copy (`hades backup --rows`, then `hades "
    "restore` with HADES_STORE=sqlite)"
)
FORMAT = 1  # of the document; raise it when a field is renamed or means something else


@dataclass
class _NextState:
    """The state that is built aside: its graph, what its stages reported, what they broke."""

    context: BuildContext
    ingest: Ingest
    report: JsonObject = field(default_factory=dict)
    snapshot: Path | None = None
    broken: list[ContractResult] = field(default_factory=list)

    def build(self, night: Night) -> None:
        """Run the stages in order, as far as their contracts hold, and publish aside."""
        try:
            run_night(
                night,
                self._run,
                self._check,
                lambda report, error: None,
                self.report,
            )
        except ContractBroken:
            if not self.broken:
                raise

    def _run(self, stage: NightStage, night: Night) -> JsonObject:
        if stage.name == "released":
            return timed(lambda: self._publish(night))
        return timed(lambda: run_stage(stage, self.context, self.ingest, night))

    def _check(self, contracts: Sequence[str]) -> JsonObject:
        def check() -> JsonObject:
            outcome = check_contracts(self.context, contracts)
            self.broken += [result for result in outcome.checked if result.findings]
            return outcome.require().as_dict()

        return timed(check)

    def _publish(self, night: Night) -> JsonObject:
        """Write the snapshot where nothing is served from; nothing is registered."""
        store = self.context.store
        published = publish(
            store,
            self.context.home,
            created_at=night.as_of,
        )
        checked = check_contract(
            store,
            "snapshot",
            snapshot=published.path,
            engine="arrow",
        )

        if checked.findings:
            self.broken.append(checked)
        else:
            self.snapshot = published.path

        return {"snapshot": published.snapshot}


def make_plan(
    context: BuildContext,
    settings: Settings,
    *,
    specs: Sequence[SourceSpec] = (),
    paid: PaidModels = PaidModels(),
    tools_now: Tools | None = None,
) -> JsonObject:
    """Plan a build of these corpora, or of all that are known; the document of the plan, which is
    also kept in its folder.

    `tools_now` are what questions are asked with now, where the settings of the plan are others.
    Texts are embedded and the language model is asked here, and not again when the plan is applied.
    """
    state = _require_state(context.state)
    began = time.time()
    night = replace(begin(sources=list(specs)), learns=False)
    inputs = read_inputs(
        context.store,
        context.home,
        settings,
        specs or known(context.store),
    )
    aside = plans.building_folder(context.home)
    plan_folder = make_private_folder(aside / "plan")

    try:
        since = state.copy(aside / "graph.db")
        _link_files(context, aside)
        assert context.open_past is not None

        with context.open_past(aside) as (side, ingest):
            marks = store_marks(side.store)
            following = _NextState(replace(side, engine="arrow"), ingest)
            following.build(night)
            state.write_changes(
                aside / "graph.db",
                since,
                plan_folder / plans.CHANGES,
            )
            rows = state.read_changes(plan_folder / plans.CHANGES)
            standing = _ask_standing(context, following, tools_now)
            plan = {
                **_head(began, night, context, following),
                "rows": describe_changes(rows, context.store, side.store),
                "all_rows": _by_collection(rows),
                "cost": cost_of(rows, side.store, following.report, paid),
                "standing": standing,
                "contracts": _contracts(following, standing),
                "inputs": inputs,
                "marks": marks,
                "specs": [spec.model_dump(mode="json") for spec in specs],
                "report": following.report,
            }

        plan["changes"] = bool(rows) or plan["before"] != plan["after"]
        plan["seconds"] = _seconds(began, following.report)
        _keep(
            context.home,
            plan_folder,
            plan,
            settings.plans_kept,
        )
    finally:
        shutil.rmtree(aside, ignore_errors=True)

    return plan


def _require_state(state: StateFile | None) -> StateFile:
    if state is None:
        raise StoreError(
            "a plan works on the file of the embedded store, and ArangoDB has none; use "
            f"HADES_STORE=sqlite, or {WITHOUT_PLAN}"
        )

    return state


def _link_files(context: BuildContext, aside: Path) -> None:
    """What stages read beside the store: rankers and the rules of the home's own."""
    for path in (*(context.home / ranker_files.FOLDER).glob("*.npz"), context.home / own.FILE):
        if path.is_file():
            target = aside / path.relative_to(context.home)
            target.parent.mkdir(exist_ok=True)
            os.link(path, target)


def _head(
    began: float,
    night: Night,
    context: BuildContext,
    following: _NextState,
) -> JsonObject:
    """Which plan this is, and what serves before and after it."""
    snapshot = following.snapshot
    return {
        "format": FORMAT,
        "plan": f"{datetime.fromtimestamp(began, UTC):p%Y%m%dT%H%M%S-%f}"[:-3],
        "created": iso(datetime.fromtimestamp(began, UTC)),
        "as_of": night.as_of.isoformat(),
        "applied": "",
        "before": served(context.home),
        "store_is_at": built_after_served(context.home),
        "after": "" if snapshot is None else snapshot.name,
        "sources": following.report.get("sources", {}).get("sources", []),
    }


def _ask_standing(
    context: BuildContext,
    following: _NextState,
    tools_now: Tools | None,
) -> JsonObject:
    """What both graphs answer to the standing questions; empty where there are none, or no next
    graph.
    """
    questions = list_standing(context.store)
    if not questions or following.snapshot is None or context.open_tools is None:
        return {}

    with closing(open_folder(following.snapshot)) as view:
        former = open_former(context.home)
        return check_standing(
            questions,
            former,
            view,
            context.open_tools(),
            tools_now,
        )


def _contracts(following: _NextState, standing: JsonObject) -> JsonObject:
    """How many rules were checked, and those that break: a plan with one cannot be applied."""
    results = list(following.broken)
    if standing:
        results.append(check_required(standing))

    broken: list[JsonObject] = []
    for result in results:
        for finding in result.findings:
            rule = {
                "rule": finding.rule,
                "sentence": finding.sentence,
            }
            rows = {
                "rows": finding.failed,
                "keys": list(finding.keys[:5]),
            }
            broken.append(
                {
                    "contract": result.contract,
                    **rule,
                    **rows,
                }
            )

    checked = chain.from_iterable(outcome["contracts"] for outcome in following.report["contracts"])
    rules = sum(result["rules"] for result in checked)
    return {"rules": rules, "broken": broken}


def _by_collection(rows: Sequence[RowChange]) -> dict[str, dict[str, list[str]]]:
    """The keys of all rows that change."""
    keys: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        changes = keys.setdefault(
            row.collection,
            {
                "added": [],
                "changed": [],
                "removed": [],
            },
        )
        changes[row.change].append(row.key)

    return keys


def _seconds(began: float, report: JsonObject) -> JsonObject:
    """What the plan took, by stage, and about what its application will: publishing again."""
    stages = {}
    for name in report["began"]:
        if name in report:
            stages[name] = report[name]["took"]

    stages["contracts"] = round(sum(check["took"] for check in report["contracts"]), 3)
    return {
        "plan": round(time.time() - began, 1),
        "apply": round(stages.get("released", 0.0), 1),
        "stages": stages,
    }


def _keep(
    home: Path,
    plan_folder: Path,
    plan: JsonObject,
    keep: int,
) -> None:
    """Give the plan its name in one step; older ones go."""
    folder = home / plans.FOLDER / plan["plan"]
    plan["folder"] = str(folder)
    plans.write_plan(plan_folder, plan)
    write_page(plan_folder / plans.PAGE, plan)
    plan_folder.rename(folder)
    plans.retain_plans(home, keep)
