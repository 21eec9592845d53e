"""Tasks of plans: make one, let a person approve it, apply it."""

from __future__ import annotations

from typing import Any

from hades.errors import NotApproved
from hades.night.plan import folder as plans
from hades.night.plan.apply import apply_plan
from hades.night.plan.find import find_corpora
from hades.night.plan.make import make_plan
from hades.night.plan.page import headline, markdown
from hades.settings.load import load_settings
from hades.wiring import open_hades, paid_models
from tasks import artifacts, policies
from tasks.artifacts import progress_of
from tasks.unit import unit


@unit("plan build", policies.HEAVY, headline)
def plan_build(path: str | None) -> dict[str, Any]:
    """What a build would change, as a page of the run; the plan is kept for its application."""
    settings = load_settings()
    with open_hades(settings, progress=progress_of("plan")) as hades:
        specs = find_corpora(hades.store, path)
        plan = make_plan(
            hades.build_context,
            settings,
            specs=specs,
            paid=paid_models(settings),
        )

    artifacts.page(
        "plan",
        markdown(plan),
        headline(plan),
    )
    return {name: value for name, value in plan.items() if name not in plans.INNER}


def is_approved(plan: dict[str, Any]) -> bool:
    """Whether a person approves the plan; False where the settings let nobody be asked.

    Raises `NotApproved` where nobody does in time, and changes nothing.
    """
    name = plan["plan"]
    refused = NotApproved(
        f"nobody approved {name} in time; nothing was changed: `hades apply {name}` still does "
        "what it says, or plan again"
    )
    return artifacts.is_accepted(
        f"Apply {name}?",
        refused,
        markdown(plan),
    )


@unit(
    "apply plan",
    policies.HEAVY,
    lambda report: f"{report['snapshot']} serves",
)
def apply_build(name: str, keep: int) -> dict[str, Any]:
    """Do exactly what the plan says."""
    settings = load_settings()
    with open_hades(settings, progress=progress_of("apply")) as hades:
        folder = plans.find_plan(settings.home, name)
        return apply_plan(
            hades.build_context,
            settings,
            folder,
            keep,
        )
