"""Code at a moment in the past: what a later commit renamed, moved or wrote is not shown."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.api import Hades
from hades.retrieval.core.types import NAMES_OF_RECIPES
from hades.wiring import open_hades
from tests.homes import settings_of

SEPTEMBER, OCTOBER = (datetime(2026, month, 1, tzinfo=UTC) for month in (9, 10))
BETWEEN, AFTERWARDS = "2026-09-15", "2026-10-15"
LEDGER = '''"""The ledger of payments."""


def wait(seconds):
    """Wait before a payment is sent again."""
    return seconds * 2


def {name}(payment):
    """Send a payment again after a failure, later each time."""
    return wait(payment.tries)
'''
RATES = '''"""Rates of exchange."""


def {name}(rates):
    """Take the mean of the rates of exchange of a day."""
    return sum(rates) / len(rates)


def round_rate(rate):
    """Round a rate of exchange to four digits."""
    return round(rate, 4)
'''
PORTS = '''"""Ports of the payment service."""


def open_port(number):
    """Open a port of the payment service."""
    return number
'''
LATER = ("call_again", "journal", "average_rate", "harbours", "Call a payment again")


def commit(folder: Path, at: datetime, message: str) -> None:
    person = {"NAME": "Ada", "EMAIL": "", "DATE": at.isoformat()}
    environment = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in person.items()
    }
    for arguments in (["add", "--all"], ["commit", "--quiet", "--message", message]):
        subprocess.run(
            ["git", *arguments], cwd=folder, env={**os.environ, **environment}, check=True
        )


@pytest.fixture(scope="module")
def hades(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hades]:
    """A repository whose second commit moves a file and renames a function in it, renames a
    function of a file that stays, and moves a file as it is.
    """
    home = tmp_path_factory.mktemp("repository")
    source = home / "shop" / "src"
    source.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=source.parent, check=True)
    (source / "ledger.py").write_text(LEDGER.format(name="retry_later"))
    (source / "rates.py").write_text(RATES.format(name="mean_rate"))
    (source / "ports.py").write_text(PORTS)
    commit(source.parent, SEPTEMBER, "Payments, rates and ports")
    (source / "ledger.py").unlink()
    (source / "journal.py").write_text(LEDGER.format(name="call_again"))
    (source / "rates.py").write_text(RATES.format(name="average_rate"))
    (source / "ports.py").rename(source / "harbours.py")
    commit(source.parent, OCTOBER, "Call a payment again instead of retrying it")
    with open_hades(settings_of(home / "home")) as opened:
        opened.ingest.workspace(source.parent)
        opened.build()
        yield opened


QUESTIONS = (
    "which function sends a payment again after a failure?",
    "how is the mean of the rates of exchange taken?",
    "which function rounds a rate of exchange?",
    "what opens a port of the payment service?",
)


@pytest.mark.parametrize("recipe", NAMES_OF_RECIPES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_later_commit_changed_is_not_shown(hades: Hades, recipe: str, question: str) -> None:
    found = hades.retrieve(question, recipe=recipe, as_of=BETWEEN, level="symbol")
    shown = found.model_dump_json()
    assert [word for word in LATER if word.casefold() in shown.casefold()] == []


def test_what_no_later_commit_changed_is_still_found(hades: Hades) -> None:
    found = hades.retrieve(QUESTIONS[2], as_of=BETWEEN)
    assert found.passages[0].symbol == "round_rate"


def test_after_the_commit_the_new_names_are_shown(hades: Hades) -> None:
    for moment in (AFTERWARDS, None):
        first = hades.retrieve(QUESTIONS[0], as_of=moment).passages[0]
        assert (first.path, first.symbol) == ("src/journal.py", "call_again")
