"""Several contracts at once: one page, and one message for the person who is called."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from hades.errors import ContractBroken
from hades.ports.clock import utc_now
from hades.ports.store import GraphStore
from hades.stages.build_context import BuildContext
from hades.stages.contracts.check_contract import ContractResult, check_contract, describe_broken, write_page
from hades.stages.contracts.last_result import (
    READS,
    UNCHANGED,
    Inputs,
    check_before,
    find_known,
    is_whole_due,
    last_results,
    note_result,
    read_inputs,
)


@dataclass(frozen=True)
class Outcome:
    """The results of several contracts."""

    checked: tuple[ContractResult, ...]
    page: Path

    @property
    def broken_rules(self) -> list[str]:
        """Ids of the rules that rows broke."""
        return [finding.rule for one in self.checked for finding in one.findings]

    @property
    def is_broken(self) -> bool:
        """Whether the line must stop."""
        return bool(self.broken_rules)

    @property
    def alerts(self) -> list[str]:
        """What to alert about: the broken rules in one line, or nothing."""
        return [",".join(self.broken_rules)] if self.is_broken else []

    @property
    def message(self) -> str:
        """Which rules, which rows, where to read more."""
        return f"{describe_broken(self.checked)}; see {self.page}"

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row a contract, and one a broken rule."""
        rows = []
        for one in self.checked:
            counts = {"rules": one.rules, "broken": len(one.findings), "rows": one.rows, "carried": one.carried}
            rows.append({"contract": one.contract, **counts})
            rows += [
                {
                    "contract": finding.rule,
                    "rules": finding.sentence,
                    "broken": finding.failed,
                    "rows": finding.keys[:5],
                    "carried": "",
                }
                for finding in one.findings
            ]
        return rows

    def require(self) -> Self:
        """Stop the line here when a rule is broken."""
        if self.is_broken:
            raise ContractBroken(self.message)
        return self

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"contracts": [one.as_dict() for one in self.checked], "page": str(self.page)}


def check_contracts(
    context: BuildContext, contracts: Sequence[str], *, full: bool = False, now: datetime | None = None
) -> Outcome:
    """Check these contracts of the store and write the page, which also shows the last result of the others.

    A contract that held is checked again for rows that changed since, for rows that refer to them, and for what must
    hold of a collection as a whole; for every row once a week. `full` checks every rule of every row with Great
    Expectations, whatever was checked before.
    """
    moment = now or utc_now()
    seen: dict[str, list[str]] = {}  # marks, read before any row: what another writer changes meanwhile is not noted
    inputs = {name: read_inputs(context.store, name, seen) for name in contracts}
    whole = {name for name in contracts if full or is_whole_due(context.store, name, moment)}
    checked = tuple(_check(context.store, name, inputs[name], name in whole, full=full) for name in contracts)
    due = [one for one in checked if one.notes != (UNCHANGED,)]
    with context.store.bulk(["build_stages"]) if due else nullcontext(context.store) as inside:
        for one in due:
            note_result(inside, one.contract, inputs[one.contract], one, None if one.carried else moment)
    others = last_results(context.store, (name for name in READS if name not in contracts))
    return Outcome(checked, write_page((*checked, *others), context.home / "reports"))


def _check(store: GraphStore, name: str, inputs: Inputs | None, is_whole: bool, *, full: bool) -> ContractResult:
    held = None if is_whole else check_before(store, name, inputs)
    if held is not None:
        return held
    known = {} if is_whole else find_known(store, name, inputs)
    return check_contract(store, name, engine="great_expectations" if full else "arrow", known=known)
