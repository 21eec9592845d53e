"""Several contracts at once: one page, and one message for the person who is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hades.errors import ContractBroken
from hades.stages.build_context import BuildContext
from hades.stages.contracts.check_contract import ContractResult, broken_message, check_contract, write_page


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
    def message(self) -> str:
        """Which rules, which rows, where to read more."""
        return f"{broken_message(self.checked)}; see {self.page}"

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


def check_contracts(context: BuildContext, contracts: Sequence[str]) -> Outcome:
    """Check these contracts of the store and write the page."""
    checked = tuple(check_contract(context.store, contract) for contract in contracts)
    return Outcome(checked, write_page(checked, context.home / "reports"))
