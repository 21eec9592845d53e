"""Edits planted over many nights: blame names the night and the page of each. `make soak` plants
sixty over thirty nights, `make test` fewer, but more nights than snapshots are kept.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hades.night.blame import blame
from hades.night.history import moves_of
from hades.night.release.publish import release
from hades.settings.tree import Settings
from hades.wiring import open_hades
from tests.homes import settings_of
from tests.patience import examples

pytestmark = pytest.mark.slow
NIGHTS = min(30, examples(12))
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
STARTS = ("Bar", "Cal", "Dor", "Fen", "Gal", "Hol", "Jor", "Kel", "Lam", "Mor")
ENDS = ("dunet", "virok", "sabel", "tomin", "wexor", "lupat")
TOPICS = [f"{start}{end}" for end in ENDS for start in STARTS]
KINDS = ("edited", "added", "removed", "edited")


class Site:
    """Pages about sixty things, of which two change each night."""

    def __init__(self, folder: Path) -> None:
        self.pages = folder / "pages"
        self.pages.mkdir()
        self.settings: Settings = settings_of(folder / "home")
        for number, topic in enumerate(TOPICS):
            self.write(topic, self.first_text(number, topic))
            if KINDS[number % 4] == "removed":
                self.write(f"{topic}-old", f"Some say that Ivo Kern keeps {topic} these days.")

    def first_text(self, number: int, topic: str) -> str:
        if KINDS[number % 4] == "added":
            return ""
        return f"The keeper of {topic} is Ada Holm. It stands in the hall."

    def write(self, name: str, text: str) -> None:
        if text:
            (self.pages / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")

    def plant(self, number: int) -> str:
        """Make the edit of a thing; the page that it changes."""
        topic, kind = TOPICS[number], KINDS[number % 4]
        if kind == "removed":
            (self.pages / f"{topic}.md").unlink()
        else:
            self.write(topic, f"The keeper of {topic} is Mia Falk. It stands in the hall.")
        return f"{topic}.md"

    def disturb(self, number: int) -> None:
        """Change something else on a page that was edited before."""
        path = self.pages / f"{TOPICS[number]}.md"
        if path.exists():
            path.write_text(f"{path.read_text('utf-8')}\nIt was painted {number} times.\n", "utf-8")

    def build(self, night: int, keep: int) -> None:
        with open_hades(self.settings) as hades:
            hades.ingest.documents(self.pages)
            release(hades.build_context, FIRST + timedelta(days=night), keep)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, dict[str, Any]]:
    """The site after all nights, with the day and the page of each edit by question."""
    site = Site(tmp_path_factory.mktemp("sixty"))
    site.build(0, 7)
    edits: dict[str, Any] = {}
    for night in range(1, NIGHTS + 1):
        day = f"{FIRST + timedelta(days=night):%Y-%m-%d}"
        for number in (2 * night - 2, 2 * night - 1):
            edits[f"Who is the keeper of {TOPICS[number]}?"] = (day, site.plant(number))
        for number in range(max(0, 2 * night - 8), 2 * night - 4):
            site.disturb(number)
        site.build(night, 7)
    return site, edits


def test_blame_names_the_night_and_the_page_of_every_edit(
    planted: tuple[Site, dict[str, Any]],
) -> None:
    site, edits = planted
    home = site.settings.home
    wrong = []
    with open_hades(site.settings) as hades:
        assert len(moves_of(home)) == NIGHTS + 1
        for question, expected in edits.items():
            report = blame(home, question, hades.answers.tools)
            document = report["document"] or {"name": ""}
            if (report["night"]["day"], document["name"]) != expected:
                wrong.append((question, expected, report))
    assert not wrong, f"{len(wrong)} of {len(edits)}: {wrong[:3]}"
