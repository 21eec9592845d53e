"""Seven nights on the history of a real project's documentation, and what they leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.prefect_site import PrefectSite, running_server
from tests.week import engines
from tests.week.diary import DAYS, STREAMING, Week
from tests.week.home_of_the_week import (
    FIXTURES,
    HomeOfTheWeek,
    StartHades,
    read_history,
    start_copies_of,
    start_installed,
    unpack,
)
from tests.week.outside_eye import OutsideEye, bridges_of, differing_files, topics_of

pytestmark = [pytest.mark.slow, pytest.mark.integration]

needs_arango = pytest.mark.skipif(
    bool(engines.missing_programs()), reason=engines.missing_programs()
)


SMALL_BYTES = 64 << 10
MOST_QUESTIONS = 4  # that the diary asks again and again; what they meet is joined too


def play(week: Week, nights: int) -> Week:
    """Live the first days of the diary."""
    for day in DAYS[:nights]:
        day(week)
    return week


def new_home(folder: Path, start_hades: StartHades, **variables: str) -> HomeOfTheWeek:
    """A home whose folder has no page yet."""
    folder.mkdir(parents=True)
    return HomeOfTheWeek(folder, start_hades, {**variables}, read_history())


def is_of_short_week(page: str) -> bool:
    """The pages of `make test`: those in folders, and those that the diary asks for."""
    asked = ("blueprints.rst", "config.rst", "index.rst", "logging.rst")
    return "/" in page or page in asked


def look_at_the_end(week: Week, folder: Path) -> None:
    """What must hold after the last night, however many there were."""
    week.eye.look_at_contracts(folder / "contracts")
    look_at_sizes(week)
    clean = week.home.beside("clean", HADES_STORE="sqlite")
    clean.documents.symlink_to(week.home.documents)
    clean.run("ingest", "documents", str(clean.documents))
    clean.run("run", "nightly", "--as-of", week.home.moment())
    assert differing_files(week.home, clean) == []
    assert topics_of(week.home, folder / "topics") == topics_of(clean, folder / "clean-topics")
    look_at_bridges(bridges_of(folder / "topics"), bridges_of(folder / "clean-topics"))


def look_at_bridges(
    week: dict[frozenset[str], set[frozenset[str]]],
    clean: dict[frozenset[str], set[frozenset[str]]],
) -> None:
    """Every bridge of a clean build is there, and beyond them only those between topics that the
    questions of the week met, of which a clean home was asked none.
    """
    assert {joined: week.get(joined) for joined in clean} == clean
    assert len(week) - len(clean) <= MOST_QUESTIONS


def look_at_the_same_week(week: Week, other: Week, folder: Path) -> None:
    """Each night of both has the same snapshot; where midnight passed between two of the same night
    their moments differ, and the last night must be that of a clean build instead.
    """
    if week.moments == other.moments:
        look_at_sizes(week)
        assert week.snapshots == other.snapshots
    else:
        look_at_the_end(week, folder)


def look_at_sizes(week: Week) -> None:
    """What holds the present state, and not the nights before, is not twice what it was."""
    second, last = week.sizes[1], week.sizes[-1]
    sys.stdout.write(f"bytes after night 2: {second}, after night {len(week.sizes)}: {last}\n")
    for part in ("graph.db", "cache", "exam"):
        assert last.get(part, 0) <= 2 * second.get(part, 0) + SMALL_BYTES, part


@pytest.fixture
def short_week(tmp_path, programs) -> Week:
    home = new_home(tmp_path / "week", start_copies_of(programs))
    home.history = read_history(is_of_short_week)
    return Week(home, OutsideEye(home), "hashing")


def test_three_nights_with_the_embedder_that_needs_no_model(short_week, tmp_path):
    play(short_week, 3)
    assert len(set(short_week.snapshots)) == 3
    look_at_the_end(short_week, tmp_path)


def test_a_home_of_an_older_version_goes_on(tmp_path, programs):
    unpack(FIXTURES / "old-home.tar.xz", tmp_path)
    home = new_home(tmp_path / "week", start_copies_of(programs), HADES_EMBEDDER="hashing")
    eye = OutsideEye(home)
    (tmp_path / "docs").rename(home.documents)
    home.run("restore", str(tmp_path / "old-home"))
    eye.new_nights()
    old = home.served()
    home.run("provision")
    assert home.read("doctor", "--deep")["ok"]
    assert home.found_pages(STREAMING)[0] == "streaming.rst"
    assert "Gunicorn" in home.run("memory", "latest", "deploy target").output
    home.run("ingest", "documents", str(home.documents))
    home.write("appcontext.rst", read_history()["3.1.3"]["appcontext.rst"])
    eye.look_after_night(home.run("run", "nightly"))
    assert home.served() != old
    assert "appcontext.rst" in home.found_pages("What does the application context keep track of?")
    home.run("rollback", "graph")
    assert home.served() == old
    eye.look_at_what_serves()
    assert home.found_pages(STREAMING)[0] == "streaming.rst"


# The whole week, by `make week`


@contextmanager
def prefect_server(folder: Path) -> Iterator[PrefectSite]:
    """A server for one night; the flow runs where the command does."""
    folder.mkdir(parents=True, exist_ok=True)
    with running_server(folder, Path(sys.executable).parent) as (site, _):
        yield site


@pytest.fixture(scope="module")
def week_on_sqlite(tmp_path_factory) -> Week:
    """The week as most people live it: real programs, the default embedder, one Prefect night."""
    folder = tmp_path_factory.mktemp("sqlite")
    home = new_home(folder / "week", start_installed)
    prefect = partial(prefect_server, folder / "prefect")
    return play(Week(home, OutsideEye(home), "minilm", prefect), len(DAYS))


@pytest.mark.week
def test_the_week_on_sqlite(week_on_sqlite, tmp_path):
    assert len(week_on_sqlite.snapshots) == len(DAYS)
    look_at_the_end(week_on_sqlite, tmp_path)


@pytest.mark.week
@needs_arango
def test_the_week_on_a_server(week_on_sqlite, tmp_path):
    with engines.running_server(tmp_path / "server") as settings:
        home = new_home(tmp_path / "week", start_installed, **settings)
        home.run("provision")
        week = play(Week(home, OutsideEye(home), "minilm"), len(DAYS))
        look_at_the_same_week(week, week_on_sqlite, tmp_path)


@pytest.mark.week
@needs_arango
def test_the_week_on_a_cluster_that_loses_servers(week_on_sqlite, tmp_path):
    cluster = engines.Cluster(tmp_path / "cluster")
    try:
        home = new_home(tmp_path / "week", start_installed, **cluster.settings)
        home.run("provision")
        week = Week(home, OutsideEye(home), "minilm")
        week.crash_during = partial(cluster.crash_during, home)
        play(week, len(DAYS))
        look_at_the_same_week(week, week_on_sqlite, tmp_path)
    finally:
        cluster.stop()
