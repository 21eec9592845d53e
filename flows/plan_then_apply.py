"""A build that a person sees before it happens: plan, approval, application."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tasks.plan import apply_build, is_approved, plan_build
from tasks.unit import build_flow


@build_flow("plan_then_apply")
def plan_then_apply(
    path: str | None = None,
    keep: Annotated[int, Field(ge=1)] = 7,
) -> dict[str, Any]:
    """Plan a build, wait until a person approves it, and do exactly that; others may build
    meanwhile.

    Args:
        path: folder or file to read, as the worker sees it; empty: all that were ingested before
        keep: how many of the newest snapshots to keep
    """
    plan = plan_build(path)
    if not plan["changes"]:
        return {
            "plan": plan["plan"],
            "applied": False,
            "why": "nothing would change",
        }

    if not is_approved(plan):
        why = f"HADES_APPROVAL_MINUTES is 0, so nobody is asked; hades apply {plan['plan']}"
        return {
            "plan": plan["plan"],
            "applied": False,
            "why": why,
        }

    return {
        **apply_build(plan["plan"], keep),
        "applied": True,
    }
