"""A web site is copied politely and by its versions; whatever goes wrong there, what was read of it
stays, and is not said to be current.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.hades.ingest.sources.remote_site import NOW, Site, Syncing, page, serving, syncing

PAGES = {
    "/": page("Start", "Welcome to the ledger."),
    "/guide/": page("Guide", "Open the valve before the pump."),
    "/guide/pump": page("Pump", "The pump needs twelve volts."),
}


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(PAGES) as served:
        yield served


@pytest.fixture
def home(site: Site, tmp_path: Path) -> Syncing:
    return syncing(tmp_path / "home", site.url, delay_seconds=0.0)


@pytest.fixture
def synced(home: Syncing) -> Syncing:
    assert home.sync().problem == ""
    return home


def assert_stopped(home: Syncing, *words: str, accept: bool = False) -> None:
    """The sync fails with these words, what was there stays, and no success is noted."""
    copies, success = home.copies, home.state.last_success
    report = home.sync(accept)
    assert all(word in report.problem for word in ("there", *words)), report.problem
    assert home.copies == copies
    assert home.state.last_success == success
    assert home.state.problem == report.problem
    assert home.state.failures >= 1


def test_pages_are_copied_with_their_address_and_an_unchanged_page_is_not_sent_again(
    site: Site, synced: Syncing
) -> None:
    assert set(synced.copies) == {"index.html", "guide/index.html", "guide/pump.html"}
    copies = synced.remotes.ledger("there").copies()
    assert {copy.path: copy.address for copy in copies.values()} == {
        "index.html": f"{site.url}/",
        "guide/index.html": f"{site.url}/guide/",
        "guide/pump.html": f"{site.url}/guide/pump",
    }
    site.sent.clear()
    site.pages["/guide/pump"] = page("Pump", "The pump needs twenty volts.")
    report = synced.sync()
    assert site.sent == ["/guide/pump"]
    assert (report.changed, report.unchanged, report.new, report.removed) == (1, 2, 0, 0)
    assert b"twenty" in synced.copies["guide/pump.html"]


def test_a_page_that_the_sitemap_no_longer_lists_goes_and_so_does_one_that_is_not_found(
    site: Site, synced: Syncing
) -> None:
    del site.pages["/guide/pump"]
    assert synced.sync().removed == 1
    site.fault = lambda path, headers: (410, {}, []) if path == "/guide/" else None
    assert synced.sync().removed == 1
    assert set(synced.copies) == {"index.html"}
    assert synced.state.documents == 1


def test_a_renamed_page_has_its_new_address_only(site: Site, synced: Syncing) -> None:
    site.pages["/manual/pump"] = site.pages.pop("/guide/pump")
    report = synced.sync()
    assert (report.new, report.removed) == (1, 1)
    assert "manual/pump.html" in synced.copies
    assert "guide/pump.html" not in synced.copies


def test_robots_are_followed_and_requests_keep_their_distance(site: Site, home: Syncing) -> None:
    site.robots = "User-agent: *\nDisallow: /guide/\nCrawl-delay: 7\n"
    home.sync()
    assert set(home.copies) == {"index.html"}
    assert home.waits == [7.0, 7.0]  # before the sitemap and before the page


def test_pages_of_another_host_and_its_redirects_are_not_read(site: Site, home: Syncing) -> None:
    away = {"location": "http://169.254.169.254/secret"}
    site.fault = lambda path, headers: (302, away, []) if path == "/guide/" else None
    report = home.sync()
    assert set(report.reasons) == {"unreadable"}
    assert set(home.copies) == {"index.html", "guide/pump.html"}


@pytest.mark.parametrize("status", [401, 403])
def test_an_expired_token_stops_the_sync(site: Site, synced: Syncing, status: int) -> None:
    site.fault = lambda path, headers: (status, {}, []) if path == "/guide/pump" else None
    assert_stopped(synced, str(status), "expired", "/guide/pump")


def test_a_server_error_in_the_middle_stops_the_sync_after_some_tries(
    site: Site, synced: Syncing
) -> None:
    site.pages = {path: content + b"<p>new</p>" for path, content in site.pages.items()}
    site.fault = lambda path, headers: (500, {}, []) if path == "/guide/pump" else None
    assert_stopped(synced, "500", "4 times")
    site.fault = lambda path, headers: None
    assert synced.sync().changed == 3
    assert synced.state.failures == 0


def test_a_rate_limit_is_waited_for_as_long_as_the_server_asks(site: Site, home: Syncing) -> None:
    refused = iter([(429, {"retry-after": "9"}, [])])
    site.fault = lambda path, headers: next(refused, None) if path == "/guide/" else None
    assert home.sync().problem == ""
    assert 9.0 in home.waits


def test_a_rate_limit_for_an_hour_stops_the_sync(site: Site, synced: Syncing) -> None:
    site.fault = lambda path, headers: (429, {"retry-after": "3600"}, [])
    assert_stopped(synced, "429", "3,600 s")


def test_half_a_sitemap_is_not_taken_for_the_whole(site: Site, synced: Syncing) -> None:
    half = site.sitemap()[:-60]
    site.fault = lambda path, headers: (200, {}, [half]) if path == "/sitemap.xml" else None
    assert_stopped(synced, "whole sitemap", "nothing was changed")


def test_a_connection_that_is_cut_stops_the_sync(site: Site, synced: Syncing) -> None:
    said = {"content-length": "5000", "content-type": "text/html"}
    site.fault = lambda path, headers: (200, said, [b"<p>half"]) if path == "/guide/" else None
    assert_stopped(synced, "connection failed")


def test_a_clock_in_the_future_neither_dates_a_page_nor_hides_its_changes(
    site: Site, home: Syncing
) -> None:
    site.headers = {"etag": "", "last-modified": "Fri, 01 Jan 2038 00:00:00 GMT"}
    home.sync()
    copies = home.remotes.ledger("there").copies().values()
    assert {copy.modified for copy in copies} == {None}
    site.pages["/guide/pump"] = page("Pump", "The pump needs twenty volts.")
    assert home.sync().changed == 1


def test_a_huge_page_is_set_aside_without_reading_it_to_its_end(site: Site, home: Syncing) -> None:
    sent: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            sent.append(1)
            yield b"<p>more and more</p>" * 50_000

    html = {"content-type": "text/html"}
    site.fault = lambda path, headers: (200, html, endless()) if path == "/guide/" else None
    report = home.sync()
    assert report.reasons == {"oversized": 1}
    assert "limit" in report.set_aside[0]["detail"]
    assert len(sent) < 100
    assert set(home.copies) == {"index.html", "guide/pump.html"}


def test_a_page_in_the_character_set_of_its_header_is_read_in_it(site: Site, home: Syncing) -> None:
    site.pages["/guide/"] = "<h1>Ключ</h1><p>Откройте клапан.</p>".encode("koi8-r")
    site.headers = {"content-type": "text/html; charset=koi8-r"}
    site.pages = {"/guide/": site.pages["/guide/"]}
    home.sync()
    assert "клапан" in home.copies["guide/index.html"].decode()


def test_a_mass_delete_is_stopped_until_it_is_accepted(site: Site, tmp_path: Path) -> None:
    site.pages = {f"/p{number}": page(f"P{number}", "A page.") for number in range(40)}
    home = syncing(tmp_path / "home", site.url, delay_seconds=0.0)
    home.sync()
    site.pages = dict(list(site.pages.items())[:20])
    assert_stopped(home, "20 of 40 documents are gone", "max_gone", "--accept")
    assert home.sync(accept=True).removed == 20
    assert home.state.documents == 20


def test_an_empty_sitemap_does_not_empty_the_corpus(site: Site, synced: Syncing) -> None:
    site.pages = {}
    assert_stopped(synced, "0 documents", "min_documents", "--accept")


def test_a_source_is_overdue_when_it_failed_for_longer_than_its_interval(
    site: Site, synced: Syncing
) -> None:
    assert not synced.state.is_overdue(synced.clock[0])
    site.fault = lambda path, headers: (500, {}, [])
    synced.sync()
    synced.sync()
    assert synced.state.is_overdue(synced.clock[0])
    assert synced.state.last_success is not None
    assert synced.state.last_success > NOW
