"""The diary of a week: what a person does each day with one folder of documentation, and each
night.

A function is a day and its night. Each starts from the home that the day before left, acts by
commands alone, and looks at what came of them; `OutsideEye` looks after every night.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa

from hades.ports.store import Mode, Term, scan_rows
from hades.settings.load import load_settings
from hades.wiring import open_store
from tests.e2e.prefect_site import PrefectSite
from tests.week.home_of_the_week import RELEASES, Ended, HomeOfTheWeek
from tests.week.outside_eye import OutsideEye

FORGOTTEN = "salaries.rst"
PAY = "What is each person paid?"  # in words that the page does not have, for questions are kept
FORGOTTEN_WORDS = ("Ermintrude", "ermintrude", "Vanderplank", "vanderplank", "quokka", "Quokka")
SALARIES = """Salaries
========

What each person is paid stands in the quokka ledger.

Ermintrude Vanderplank keeps the quokka ledger in Bergen beside her notes on Message Flashing.

Ermintrude Vanderplank signs the quokka ledger each month after she read :doc:`config` again.

Ermintrude Vanderplank prints the quokka ledger in Bergen for those who know :doc:`logging` well.
"""
STREAMING = "How do I stream a large response?"
BLUEPRINTS = "How do I register a blueprint?"


@dataclass
class Week:
    """The home, the eye that looks at it, and what the engine can do.

    `crash_during` takes the name of a moment, "ingestion" or "night", and loses a server of the
    engine amid the command. `prefect` opens a server for one night.
    """

    home: HomeOfTheWeek
    eye: OutsideEye
    embedder: str
    prefect: Callable[[], AbstractContextManager[PrefectSite | None]] = nullcontext
    crash_during: Callable[[str], AbstractContextManager[None]] = lambda moment: nullcontext()
    snapshots: list[str] = field(default_factory=list)
    moments: list[str] = field(default_factory=list)
    sizes: list[dict[str, int]] = field(default_factory=list)

    def build_at_night(self, **variables: str) -> Ended:
        """The night of the day: it ends well and the eye finds nothing."""
        night = self.home.run("run", "nightly", **variables)
        self.eye.look_after_night(night)
        self.snapshots.append(self.home.served())
        self.moments.append(self.home.moment())
        self.sizes.append(self.home.sizes())
        return night

    def expect_page(self, question: str, page: str) -> None:
        """The page is among the sources of the answer."""
        pages = self.home.found_pages(question)
        assert page in pages, f"{question}: {page} is not among {pages}"


def monday(week: Week) -> None:
    """The folder is read for the first time, with the embedder that needs no model."""
    home = week.home
    home.variables["HADES_EMBEDDER"] = "hashing"
    for release in RELEASES[:2]:
        home.history[release][FORGOTTEN] = SALARIES
    home.write_release(RELEASES[0])
    with week.crash_during("ingestion"):
        home.run("ingest", "documents", str(home.documents))
    home.run("query", STREAMING, code=1)
    home.run("memory", "add", "deploy target", "The service runs on Gunicorn.")
    week.build_at_night()
    week.expect_page(STREAMING, "patterns/streaming.rst")
    week.expect_page(PAY, FORGOTTEN)
    assert any("exam.parquet" in path for path in week.eye.look_for(*FORGOTTEN_WORDS))


def tuesday(week: Week) -> None:
    """The embedder of the product from now on; a release arrives while the folder is watched."""
    home = week.home
    home.variables["HADES_EMBEDDER"] = week.embedder
    watching = home.start("watch", str(home.documents))
    assert watching.stderr is not None
    lines = iter(watching.stderr.readline, "")
    assert any(line.startswith("updated in") for line in lines)
    home.write_release(RELEASES[1])
    assert any("deploying/gunicorn.rst" in read_update(home, line) for line in lines)
    watching.send_signal(signal.SIGINT)
    watching.communicate()
    assert watching.returncode == 0
    assert all(run.info.status == "FINISHED" for run in week.eye.new_nights())
    week.expect_page("How do I deploy with Gunicorn?", "deploying/gunicorn.rst")
    week.build_at_night()
    week.expect_page("How do I deploy with Gunicorn?", "deploying/gunicorn.rst")
    home.run("memory", "add", "deploy target", "The service runs on Waitress.")
    assert "Waitress" in home.run("memory", "latest", "deploy target").output


def read_update(home: HomeOfTheWeek, line: str) -> list[str]:
    """The pages that a question finds once a line says that the folder was updated."""
    if not line.startswith("updated in"):
        return []
    return home.found_pages("How do I deploy with Gunicorn?")


def wednesday(week: Week) -> None:
    """A page renamed, one deleted, one as it was on Monday; one is forgotten."""
    home = week.home
    home.write_release(RELEASES[2])
    home.rename("patterns/streaming.rst", "patterns/large-responses.rst")
    home.delete("patterns/favicon.rst")
    home.write("logging.rst", home.history[RELEASES[0]]["logging.rst"])
    assert not (home.documents / FORGOTTEN).exists()
    certificate = home.read("forget", FORGOTTEN)
    assert certificate["complete"]
    assert certificate["read_again"] == []
    with week.crash_during("night"):
        week.build_at_night()
    home.run("publish", "--prune", "1")
    week.expect_page(STREAMING, "patterns/large-responses.rst")
    found = home.found_pages("How do I add a favicon?")
    assert "patterns/favicon.rst" not in found
    assert FORGOTTEN not in home.found_pages(PAY)
    look_for_the_forgotten(week)


def look_for_the_forgotten(week: Week) -> None:
    """No file of the home holds a word of the page, packed or plain."""
    assert week.eye.look_for(*FORGOTTEN_WORDS) == []


def thursday(week: Week) -> None:
    """The night is killed (-9); what served goes on serving, and the next night ends."""
    home = week.home
    before = home.served()
    home.write_release(RELEASES[3])
    home.kill_in_stage("weights", "run", "nightly")
    assert home.served() == before
    week.expect_page(STREAMING, "patterns/large-responses.rst")
    week.build_at_night()
    assert home.served() != before


def friday(week: Week) -> None:
    """A passage is damaged: the night stops, says which and what to do, and what it says helps."""
    home = week.home
    before = home.served()
    home.write_release(RELEASES[4])
    damage_passage(home, "patterns/viewdecorators.rst")  # which this release did not change
    stopped = home.run("run", "nightly", code=1)
    assert "chunks." in stopped.errors
    assert "hades repair chunks" in stopped.errors
    assert home.served() == before
    week.expect_page(BLUEPRINTS, "blueprints.rst")
    week.eye.look_at_stopped_night()
    home.run("repair", "chunks")
    with week.prefect() as site:
        variables = {} if site is None else {"PREFECT_API_URL": str(site.api.base_url).rstrip("/")}
        week.build_at_night(**variables)
        if site is not None:
            week.eye.look_at_prefect(site)


def damage_passage(home: HomeOfTheWeek, page: str) -> None:
    """Another text in a row of the store than the page has there, as a bad disk would."""
    store = open_store(load_settings(home.environment, home.folder), Mode.READ_WRITE)
    (document,) = scan_rows(
        store, "documents", where=[Term("origin", "==", page)], columns=["_key"]
    )
    where = [Term("document", "==", f"documents/{document['_key']}")]
    key = min(row["_key"] for row in scan_rows(store, "doc_chunks", where=where, columns=["_key"]))
    store.patch("doc_chunks", pa.table({"_key": [key], "text": ["nothing that was ever written"]}))
    store.close()


def saturday(week: Week) -> None:
    """After the night graph, weights and ranker are rolled back, and questions are answered."""
    home = week.home
    friday_served = home.served()
    home.write_release(RELEASES[5])
    week.build_at_night()
    if home.served() != friday_served:
        home.run("rollback", "graph")
        assert home.served() == friday_served
        week.eye.look_at_what_serves()
    home.run("rollback", "weights")
    week.eye.look_at_what_serves()
    home.run("rollback", "ranker", "--to", "none")
    week.eye.look_at_what_serves()
    week.expect_page(BLUEPRINTS, "blueprints.rst")
    week.expect_page(STREAMING, "patterns/large-responses.rst")


def sunday(week: Week) -> None:
    """The last release; memory and a standing question stand beside the graph."""
    home = week.home
    home.write_release(RELEASES[6])
    home.run("standing", "add", BLUEPRINTS)
    week.build_at_night()
    week.expect_page(BLUEPRINTS, "blueprints.rst")
    history = home.run("memory", "history", "deploy target").output
    assert "Gunicorn" in history
    assert "Waitress" in history
    look_for_the_forgotten(week)


DAYS = (monday, tuesday, wednesday, thursday, friday, saturday, sunday)
