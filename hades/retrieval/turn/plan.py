"""From what a caller asks for to a plan that may run: clamped with a reason, or refused with the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hades.errors import HadesError
from hades.telemetry.turn import Caps
from schemas.plan import CAPPED, HARD_CAPS, Plan, Profile, Reason

_STAGES = ("retriever", "graph", "reranker")


class PlanError(HadesError):
    """A plan that means nothing: an unknown key, a text where a number belongs, a cap below its smallest value."""


def clamp(raw: Mapping[str, Any], profile: Profile | None = None) -> Plan:
    """The plan, lowered to the hard caps of its profile; `plan_clamped` is among its reasons when it was.

    `profile` wins over the one the plan names, so a caller can be held to its own caps. What is not a matter of
    caps (an unknown key, no seeds at all) is refused.
    """
    wanted = {name: dict(part) if isinstance(part, Mapping) else part for name, part in raw.items()}
    if profile is not None:
        wanted["profile"] = profile
    given = tuple(wanted.get("reasons", ()))
    caps = _caps_of(wanted.get("profile", Profile.ONLINE))
    lowered = _lower(wanted, caps) | _fit_stages(wanted)
    if lowered:
        wanted["reasons"] = tuple(dict.fromkeys((*given, Reason.PLAN_CLAMPED)))
    try:
        return Plan.model_validate(wanted)
    except ValidationError as error:
        raise PlanError("; ".join(_explain(problem) for problem in error.errors())) from None


def caps_of(plan: Plan) -> Caps:
    """What the turn's account is opened with."""
    return Caps(plan.budget.docs_max, plan.budget.work_max, plan.budget.latency_ms)


def _caps_of(profile: object) -> Any:
    if profile not in list(Profile):
        raise PlanError(f"no profile is called {profile!r}; use one of {', '.join(Profile)}")
    return HARD_CAPS[Profile(str(profile))]


def _lower(wanted: dict[str, Any], caps: Any) -> bool:
    """Bring every number above its cap down to it, in place; whether any was."""
    lowered = False
    for place, name in CAPPED.items():
        *way, last = place
        part = wanted
        for step in way:
            part = part.get(step, {}) if isinstance(part, dict) else {}
        value = part.get(last) if isinstance(part, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value > getattr(caps, name):
            part[last], lowered = getattr(caps, name), True
    return lowered


def _fit_stages(wanted: dict[str, Any]) -> bool:
    """Shrink the stages' timeouts in proportion until they fit the turn, in place; whether they had to be."""
    try:
        plan = Plan.model_validate({"profile": wanted.get("profile", Profile.ONLINE)})
    except ValidationError:
        return False
    budget = wanted.get("budget", {})
    latency = budget.get("latency_ms", plan.budget.latency_ms) if isinstance(budget, dict) else plan.budget.latency_ms
    parts = {name: wanted.get(name, {}) for name in _STAGES}
    if not all(isinstance(part, dict) for part in parts.values()):
        return False
    times = {name: part.get("timeout_ms", getattr(plan, name).timeout_ms) for name, part in parts.items()}
    if not all(isinstance(one, int) for one in (latency, *times.values())) or min(times.values()) < 1:
        return False
    total = sum(times.values())
    if total <= latency or latency < len(_STAGES):
        return False
    for name, part in parts.items():
        wanted[name] = {**part, "timeout_ms": 1 + (latency - len(_STAGES)) * times[name] // total}
    return True


def _explain(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"]) or "the plan"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place} is {problem['input']!r}: {message}" if problem["loc"] else f"{place}: {message}"
