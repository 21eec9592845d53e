"""A past night is rebuilt aside: the graph of documents as they were, kept until it is promoted or
discarded.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hades.api import Hades
from hades.night.release.compare import compare_snapshots
from hades.night.release.publish import promote_snapshot
from hades.snapshot.open import open_snapshot
from hades.snapshot.pointer import discard, pins, root_of, served
from tests.unit.hades.night.release.small_graphs import MONDAY, PEOPLE, opened, write_pages

pytestmark = pytest.mark.slow
FRIDAY = MONDAY + timedelta(days=4)


def git(folder: Path, at: datetime, *arguments: str) -> None:
    names = {
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "",
    }
    dates = {"GIT_AUTHOR_DATE": at.isoformat(), "GIT_COMMITTER_DATE": at.isoformat()}
    subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **names, **dates}, check=True
    )


def commit(folder: Path, at: datetime) -> None:
    git(folder, at, "add", "--all")
    git(folder, at, "commit", "--quiet", "--allow-empty-message", "--message", f"pages of {at:%A}")


def paper(number: int, date: str) -> dict[str, object]:
    abstract = (
        f"{PEOPLE[number % 6]} and {PEOPLE[(number + 1) % 6]} describe the Analytical "
        "Engine of London."
    )
    return {
        "id": f"2601.0000{number}",
        "title": f"Engines {number}",
        "abstract": abstract,
        "update_date": date,
    }


def read_sources(hades: Hades, folder: Path) -> None:
    hades.ingest.workspace(folder / "code")
    hades.ingest.documents(folder / "manual" / "pages")
    hades.ingest.arxiv(folder / "papers.jsonl")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory):
    """A home of Monday that was changed and built again on Friday, and the snapshots of both
    days.
    """
    folder = tmp_path_factory.mktemp("past")
    code, manual = folder / "code", folder / "manual"
    write_pages(code, 12)
    (code / "engine.py").write_text(
        "def compute(cards):\n    return run(cards)\n\n\ndef run(cards):\n    return cards\n"
    )
    write_pages(manual / "pages", 12)
    for repository in (code, manual):
        git(repository, MONDAY, "init", "--quiet")
        commit(repository, MONDAY - timedelta(hours=5))
    papers = [paper(number, "2026-01-20") for number in range(4)]
    (folder / "papers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in papers))
    with opened(folder / "home") as hades:
        read_sources(hades, folder)
        monday = hades.build(as_of=MONDAY)["released"]["snapshot"]
        (code / "engine.py").write_text("def compute(cards, seed):\n    return cards\n")
        (code / "page3.md").unlink()
        (manual / "pages" / "page5.md").write_text(
            "# Page 5\n\nKurt Goedel met Grace Hopper in Vienna.\n"
        )
        (manual / "pages" / "new.md").write_text(
            "# New\n\nMary Somerville left London for Vienna.\n"
        )
        for repository in (code, manual):
            commit(repository, FRIDAY - timedelta(hours=5))
        papers.append(paper(4, "2026-02-05"))
        (folder / "papers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in papers))
        friday = hades.build(as_of=FRIDAY)["released"]["snapshot"]
        yield folder, hades, monday, friday


def test_a_past_night_gives_the_graph_of_that_night_and_serves_nothing(home) -> None:
    folder, hades, monday, friday = home
    hidden = folder / "monday"
    (root_of(hades.home) / monday).rename(hidden)  # so that it has to be built
    before = hades.store.counts()
    past = hades.build(as_of=MONDAY)
    assert (
        past["released"]["snapshot"] == monday
    )  # the id is the hash of every file: same nodes, same edges
    assert served(hades.home) == friday
    assert hades.store.counts() == before
    assert past["released"]["kept_as"] == "as-of-20260202T000000"
    assert pins(root_of(hades.home)) == {"as-of-20260202T000000": monday}
    assert Path(past["report"]).is_file()
    assert not (hades.home / "cache" / "past").exists()


def test_a_past_night_is_compared_promoted_and_discarded(home) -> None:
    _, hades, _, friday = home
    tuesday = MONDAY + timedelta(days=1)
    past = hades.build(as_of=tuesday)["released"]["snapshot"]
    difference = compare_snapshots(
        open_snapshot(hades.home, past), open_snapshot(hades.home, friday)
    )
    assert difference["documents"]["added"]["count"] >= 2
    assert difference["documents"]["removed"]["names"] == ["page3.md"]
    promote_snapshot(hades.build_context, past)
    assert served(hades.home) == past
    promote_snapshot(hades.build_context, friday)
    discard(hades.home, past)
    assert past not in {path.name for path in root_of(hades.home).iterdir()}


def test_before_the_first_commit_a_folder_was_empty(home) -> None:
    _, hades, _, _ = home
    past = hades.build(as_of=datetime(2026, 1, 25, tzinfo=UTC))
    read = {
        one["path"].rpartition("/")[2]: one["documents"]["read"]
        for one in past["sources"]["sources"]
    }
    assert read == {"code": 0, "pages": 0, "papers.jsonl": 4}
    assert open_snapshot(hades.home, past["released"]["snapshot"]).info.nodes["files"] == 0
