"""Several contracts at once: one page, and one message for the person who is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hades.errors import ContractBroken
from hades.ports.store import GraphStore
from hades.stages.build_context import BuildContext
from hades.stages.contracts.check_contract import ContractResult, check_contract, describe_broken, write_page
from hades.stages.contracts.last_result import READS, check_before, inputs_digest, last_results, note_result


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
            rows.append({"contract": one.contract, "rules": one.rules, "broken": len(one.findings), "rows": one.rows})
            rows += [
                {
                    "contract": finding.rule,
                    "rules": finding.sentence,
                    "broken": finding.failed,
                    "rows": finding.keys[:5],
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


def check_contracts(context: BuildContext, contracts: Sequence[str], *, full: bool = False) -> Outcome:
    """Check these contracts of the store and write the page, which also shows the last result of the others.

    A contract that held is not checked again while no row it reads has changed. `full` checks every rule of every row
    with Great Expectations, whatever was checked before.
    """
    checked = tuple(_check(context.store, name, full=full) for name in contracts)
    others = last_results(context.store, (name for name in READS if name not in contracts))
    return Outcome(checked, write_page((*checked, *others), context.home / "reports"))


def _check(store: GraphStore, name: str, *, full: bool) -> ContractResult:
    inputs = inputs_digest(store, name)  # before the rows are read: what another writer changes meanwhile is not noted
    held = None if full else check_before(store, name, inputs)
    if held is not None:
        return held
    result = check_contract(store, name, engine="great_expectations" if full else "arrow")
    note_result(store, name, inputs, result)
    return result
