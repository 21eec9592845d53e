"""One base error and few children. Each names the thing, the expectation and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_LONGEST_VALUE = 80


def plain_message(message: str) -> str:
    """A validator's message without the words that pydantic puts before it."""
    return message.removeprefix("Value error, ")


def explain_problem(problem: Mapping[str, Any], whole: str = "") -> str:
    """One of pydantic's errors as a clause: the key, its value and what was expected.

    `whole` names what was checked, for a rule that no single key breaks.
    """
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{place} is missing"

    message = plain_message(str(problem["msg"]))
    message = message[:1].lower() + message[1:]
    if not place:
        return f"{whole}: {message}" if whole else message

    value = repr(problem["input"])
    if len(value) > _LONGEST_VALUE:
        value = f"{value[:_LONGEST_VALUE]}..."

    return f"{place} is {value}: {message}"


def explain_problems(problems: Iterable[Mapping[str, Any]], whole: str = "") -> str:
    """Everything that pydantic found wrong, in one sentence."""
    return "; ".join(explain_problem(problem, whole) for problem in problems)


class HadesError(Exception):
    """Anything HADES reports to a person without a traceback."""


class SettingsError(HadesError):
    """A setting that cannot be used."""


class StoreError(HadesError):
    """Something the store could not do."""


class UnknownCollection(StoreError):
    """A collection that the catalogue does not declare."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"collection {name!r} is not in schemas/catalogue.py; check the name or declare it "
            "there"
        )
        self.name = name


class BadRows(StoreError):
    """Rows that break a rule. Nothing was written."""

    def __init__(
        self,
        collection: str,
        row: int | None,
        rule: str,
        key: str | None = None,
    ) -> None:
        place = collection
        if row is not None:
            place += f" row {row}"
        if key:
            place += f" (_key {key!r})"

        super().__init__(f"{place}: {rule}; nothing was written")
        self.collection = collection
        self.row = row
        self.rule = rule
        self.key = key


class BadQuery(StoreError):
    """A question the store cannot answer as asked: unknown column, wrong type, wrong dimension."""


class ReadOnly(StoreError):
    """A write through a read-only handle."""

    def __init__(self, action: str, needed: str = "read-write") -> None:
        super().__init__(
            f"{action} needs a {needed} handle; this one may not: open the store in {needed} mode"
        )
        self.action = action


class NotProvisioned(StoreError):
    """The store has no collections yet."""


class StoreBusy(StoreError):
    """Another writer held the store for longer than the timeout."""


class StoreUnavailable(StoreError):
    """The server did not answer, or the circuit breaker is open."""


class StoreDamaged(StoreError):
    """The file or a page of it does not hold what its checksum says."""


class QueryTimeout(StoreError):
    """A query ran past its time limit and was stopped."""


class SnapshotError(HadesError):
    """A snapshot that cannot be published or opened: which file or row, what was expected, what to
    do.
    """


class NothingPublished(SnapshotError):
    """A home without any snapshot: ingested, perhaps, but never published."""


class NotApproved(HadesError):
    """What a person was asked to approve and did not. Nothing was changed."""


class PlanOutdated(HadesError):
    """A plan of a state that is no more. Nothing was changed."""


class CallsAboveCap(HadesError):
    """More calls of a language model than a stage may make, which a person may allow. Nothing was
    sent or changed.
    """


class ContractBroken(HadesError):
    """Rows that break a rule of a contract. The line stops here; the graph that serves is left
    alone.
    """
