"""A night whose time is over takes the short way and still publishes what is complete."""

import time

import pytest

from hades.night.stage import Night, begin
from hades.snapshot.pointer import read, root_of
from schemas.sources import SourceKind, SourceSpec
from tasks.unit import without_server
from tests.homes import live_in
from tests.unit.hades.night.release.small_graphs import MONDAY, write_pages


def test_a_night_knows_what_is_left_of_its_time():
    assert begin(MONDAY).seconds_left() is None
    assert begin(MONDAY, 1.0).seconds_left() == pytest.approx(60.0, abs=5.0)
    assert Night(MONDAY, time.time(), time.time() - 1).is_over
    assert begin(MONDAY.replace(tzinfo=None)).as_of == MONDAY


@pytest.mark.slow
def test_out_of_time_stops_the_search_for_bridges_and_publishes(tmp_path, monkeypatch):
    from flows.nightly import nightly

    live_in(tmp_path / "home", monkeypatch)
    pages = write_pages(tmp_path / "pages")
    sources = [SourceSpec(source=SourceKind.DOCUMENTS, path=str(pages))]
    with without_server():
        nightly.fn(sources=sources, as_of=MONDAY)
        before = read(root_of(tmp_path / "home")).snapshot
        (pages / "page3.md").write_text(
            "# Page 3\n\nAda Lovelace met Kurt Goedel in Vienna and wrote to him.\n"
        )
        report = nightly.fn(sources=sources, as_of=MONDAY, mode="full", time_box_minutes=1e-6)
    assert report["bridges"]["stopped"] == "time"
    assert read(root_of(tmp_path / "home")).snapshot == report["released"]["snapshot"] != before
