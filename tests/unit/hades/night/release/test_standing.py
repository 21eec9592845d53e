"""Standing questions: seeded edits are reported with their document, quiet nights are quiet, a red
one stops.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hades.errors import ContractBroken
from hades.night.release.publish import release
from hades.night.standing import add_standing, list_standing
from hades.settings.tree import Settings
from hades.snapshot.pointer import served
from hades.wiring import open_hades
from tests.command_line import run, run_json
from tests.homes import live_in, settings_of

NOW = datetime(2026, 1, 31, tzinfo=UTC)
FACTS = {
    "billing.md": (
        "Who is on call for billing?",
        "Billing",
        "Ada Holm is on call for billing on weekdays.",
    ),
    "timeout.md": (
        "How long is the timeout of a request?",
        "Timeouts",
        "The timeout of a request is five seconds.",
    ),
    "proxy.md": (
        "Which variable names the proxy?",
        "Proxies",
        "The variable HTTP_PROXY names the proxy.",
    ),
    "retry.md": (
        "How often is a failed upload repeated?",
        "Uploads",
        "A failed upload is repeated three times.",
    ),
    "colour.md": (
        "Which colour has the warning banner?",
        "Banner",
        "The warning banner has the colour orange.",
    ),
    "backup.md": (
        "When does the backup begin?",
        "Backup",
        "The backup begins at midnight on Sundays.",
    ),
}
CAT = "Who feeds the office cat?"
QUESTIONS = {name: question for name, (question, _, _) in FACTS.items()}


class Place:
    """A folder of documentation and the home that is built from it."""

    def __init__(self, folder: Path) -> None:
        self.docs = folder / "docs"
        self.docs.mkdir()
        for name, (_, title, text) in FACTS.items():
            self.write(name, title, text)
        self.settings: Settings = settings_of(folder / "home")

    def write(self, name: str, title: str, text: str) -> None:
        (self.docs / name).write_text(f"# {title}\n\n{text}\n", "utf-8")

    def keep(self, **requires: str) -> None:
        with open_hades(self.settings) as hades:
            given = [
                (question, requires.get(name.partition(".")[0], ""))
                for name, question in QUESTIONS.items()
            ]
            add_standing(hades.store, [*given, (CAT, "")], NOW)

    def build(self) -> dict[str, Any]:
        with open_hades(self.settings) as hades:
            hades.ingest.documents(self.docs)
            return release(hades.build_context, NOW, None)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.build()
    place.keep()
    return place


def changed(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["question"]: one for one in report["standing"]["answers"]}


def test_seeded_edits_are_reported_with_their_documents_and_nothing_else(place: Place) -> None:
    place.write("billing.md", "Billing", "Ivo Kern is on call for billing on weekdays.")
    place.write("retry.md", "Uploads", "A failed upload is repeated seven times.")
    place.write("cat.md", "Office cat", "Mia Falk feeds the office cat.")
    (place.docs / "proxy.md").unlink()
    found = changed(place.build())
    assert found.keys() == {
        *(QUESTIONS[name] for name in ("billing.md", "retry.md", "proxy.md")),
        CAT,
    }
    told = found[QUESTIONS["billing.md"]]
    assert (told["change"], told["after"]) == (
        "changed",
        "Ivo Kern is on call for billing on weekdays.",
    )
    assert told["causes"] == [
        {"kind": "document", "subject": "billing.md", "sentence": "billing.md was changed"}
    ]
    assert found[QUESTIONS["proxy.md"]]["causes"][0]["sentence"] == "proxy.md was removed"
    assert found[CAT]["causes"][0]["sentence"] == "cat.md was added"


def test_nights_without_a_change_of_an_answer_raise_nothing(place: Place) -> None:
    quiet = place.build()["standing"]
    assert (quiet["asked"], quiet["changed"]) == (len(QUESTIONS) + 1, 0)
    place.write("cake.md", "Cake", "Cakes are baked with butter and sugar.")
    assert place.build()["standing"]["changed"] == 0


def test_an_answer_that_loses_its_source_stops_the_publication(place: Place) -> None:
    place.keep(proxy="proxy.md", backup="backup.md")
    before = served(place.settings.home)
    (place.docs / "proxy.md").unlink()
    with pytest.raises(
        ContractBroken, match=rf"1 of 2 rows.*{re.escape(QUESTIONS['proxy.md'])}.*proxy\.md.*remove"
    ):
        place.build()
    assert served(place.settings.home) == before


def test_questions_are_kept_by_hand_from_a_file_and_from_the_log(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(place.settings.home, monkeypatch, tmp_path)

    lines = tmp_path / "questions.jsonl"
    lines.write_text(
        'Where is the archive?\n{"question": "Who cleans?", "requires": "billing.md"}\n', "utf-8"
    )
    assert len(run_json("standing", "add", "--file", str(lines))["added"]) == 2
    run_json("query", "When does the archive open?")
    assert [one["question"] for one in run_json("standing", "add", "--from-log")["added"]] == [
        "When does the archive open?"
    ]
    run_json("query", "when does the archive open?")
    assert run_json("standing", "add", "--from-log")["added"] == []  # the same words
    assert "stand already" in run("standing", "add", "--from-log").output
    added = run_json("standing", "add", "Who is Ada?")["added"][0]["id"]
    assert len(run_json("standing", "list")["questions"]) == len(QUESTIONS) + 5
    assert run_json("standing", "remove", added)["removed"]["question"] == "Who is Ada?"
    refused = run("standing", "run")
    assert refused.exit_code == 1
    assert "Who cleans?: must cite billing.md" in refused.output
    assert "no older snapshot" in refused.output
    with open_hades(place.settings) as hades:
        assert len(list_standing(hades.store)) == len(QUESTIONS) + 4
