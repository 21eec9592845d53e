"""Contracts between stages: several boundaries at once, one page, one sentence for whoever is woken by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hades.errors import ContractBroken
from hades.stages.build_context import Site
from hades.stages.contracts.check_contract import Checked, broken_message, check, write_page

STORE_BOUNDARIES = ("nodes", "chunks", "embeddings", "edges", "hierarchy", "weights", "bridges")


@dataclass(frozen=True)
class Outcome:
    """What the contracts of some boundaries said."""

    checked: tuple[Checked, ...]
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
        """A row a boundary, and one a broken rule."""
        rows = []
        for one in self.checked:
            rows.append({"boundary": one.boundary, "rules": one.rules, "broken": len(one.findings), "rows": one.rows})
            rows += [
                {
                    "boundary": finding.rule,
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
        return {"boundaries": [one.as_dict() for one in self.checked], "page": str(self.page)}


def check_boundaries(site: Site, boundaries: Sequence[str]) -> Outcome:
    """Check these boundaries of the store and write the page."""
    checked = tuple(check(site.store, boundary) for boundary in boundaries)
    return Outcome(checked, write_page(checked, site.home / "reports"))
