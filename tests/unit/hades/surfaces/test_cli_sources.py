"""`hades sources`: add, sync, list, remove; the graph follows, and answers say how old they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hades.ingest.sources.remote.ledger import Ledger, state_facts
from hades.ports.services import utc_now
from tests.command_line import run, run_json
from tests.unit.hades.ingest.sources.remote_site import Site, page, serving

PAGES = {"/seal": page("Seal", "The harbour seal sleeps on pier nine."), "/tide": page("Tide", "b")}


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(PAGES) as served:
        yield served


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    return tmp_path / "home"


def add(site: Site, *options: str) -> dict[str, Any]:
    return run_json("sources", "add", site.url, "--name", "wiki", "--delay-seconds", "0", *options)


def documents(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "graph.db")) as connection:
        return {row[0] for row in connection.execute("SELECT origin FROM documents")}


def age(home: Path, **changes: object) -> None:
    """Write a state as another sync, or none, would have left it."""
    ledger = Ledger(home / "sources" / "ledgers" / "wiki.db")
    ledger.record(state={**state_facts(ledger.state()), **changes})


def test_a_source_is_added_synced_listed_and_removed(home: Path, site: Site) -> None:
    assert add(site)["documents"] == 0
    report = run_json("sources", "sync", "wiki")["synced"][0]
    assert (report["new"], report["problem"]) == (2, "")
    assert documents(home) == {"seal.html", "tide.html"}
    (row,) = run_json("sources", "list")["sources"]
    assert (row["name"], row["documents"], row["failures"], row["overdue"]) == ("wiki", 2, 0, False)
    del site.pages["/tide"]
    assert run_json("sources", "sync")["synced"][0]["graph"]["documents"]["removed"] == 1
    assert documents(home) == {"seal.html"}
    assert run_json("sources", "remove", "wiki") == {"removed": "wiki", "documents": 1}
    assert documents(home) == set()
    assert run_json("sources", "list")["sources"] == []
    assert not any((home / "sources").rglob("*.html"))


def test_a_failed_sync_ends_with_1_and_status_says_so(home: Path, site: Site) -> None:
    add(site)
    run_json("sources", "sync")
    site.fault = lambda path, headers: (401, {}, [])
    report = run_json("sources", "sync", code=1)["synced"][0]
    assert "401" in report["problem"]
    assert documents(home) == {"seal.html", "tide.html"}
    seen = f"{utc_now():%Y-%m-%d}"
    assert f"source wiki was last in step {seen}" in run("status").stdout
    assert "wiki: wiki" not in run("status").stdout
    assert run_json("status")["sources"][0]["failures"] == 1


def test_an_answer_says_where_a_page_is_opened_and_when_it_was_last_seen(
    home: Path, site: Site
) -> None:
    add(site)
    run_json("sources", "sync")
    run_json("publish")
    question = ("query", "where does the harbour seal sleep?")
    passage = run_json(*question)["passages"][0]
    assert passage["address"] == f"{site.url}/seal"
    assert not passage["overdue"]
    assert "last seen" not in run(*question).stdout
    age(home, last_success=utc_now().replace(year=utc_now().year - 1).isoformat())
    assert run_json(*question)["passages"][0]["overdue"]
    assert "seal.html was last seen 36" in run(*question).stdout
    assert "seal.html was last seen 36" in run("answer", question[1]).stdout


def test_a_nightly_build_syncs_what_is_due_and_goes_on_where_a_source_fails(
    home: Path, site: Site, tmp_path: Path
) -> None:
    text = f"sources:\n  wiki:\n    url: {site.url}\n    delay_seconds: 0\n"
    (tmp_path / "hades.yaml").write_text(text)
    assert "is not trusted" in run("sources", "list").output
    run_json("trust")
    stage = run_json("build")["builds"][0]["sources"]
    assert stage["synced"][0]["new"] == 2
    assert documents(home) == {"seal.html", "tide.html"}
    site.fault = lambda path, headers: (403, {}, [])
    age(home, last_success="2026-01-01T00:00:00Z")
    stage = run_json("build")["builds"][0]["sources"]
    assert "403" in stage["synced"][0]["problem"]
    assert documents(home) == {"seal.html", "tide.html"}


def test_status_says_of_a_source_that_it_was_never_in_step(home: Path) -> None:
    run_json("sources", "add", "http://127.0.0.1:9", "--name", "away")
    assert "source away was never in step" in run("status").stdout


def test_a_build_says_of_all_corpora_together_what_changed(home: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# {name}\n\nThe {name} page.\n")
        run_json("ingest", "documents", name)
        (tmp_path / name / "more.md").write_text(f"# More\n\nMore of the {name}.\n")
    assert "2 new, 0 changed" in run("build").stdout


def test_credentials_stand_in_no_file_no_report_and_no_message(
    home: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIKI_TOKEN", "s3cr3t/of+wiki")
    monkeypatch.setenv("DB_PASSWORD", "hunter2hunter2")
    address = site.url.replace("http://", "http://reader:${WIKI_TOKEN}@")
    seen: list[str] = []
    site.fault = lambda path, headers: seen.append(headers.get("authorization", "")) or None
    shown = [run("sources", "add", address, "--name", "wiki", "--delay-seconds", "0").output]
    shown += [run("sources", "sync", "--json").output]
    assert all(header.startswith("Basic ") for header in seen)
    site.fault = lambda path, headers: (403, {}, [])
    database = "postgresql://u:${DB_PASSWORD}@127.0.0.1:1/desk"
    shown += [run("sources", "add", database, "--name", "db", "--table", "t", "--key", "k").output]
    shown += [run("sources", "sync", "--debug").output, run("sources", "list", "--json").output]
    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for secret in ("s3cr3t/of+wiki", "s3cr3t%2Fof%2Bwiki", "hunter2hunter2"):
        assert secret.encode() not in written
        assert not any(secret in text for text in shown)


@pytest.mark.parametrize(
    "url",
    [
        "https://reader:password@example.org",
        "https://example.org/?access_token=abc",
        "postgresql://u:secret@db/desk",
    ],
)
def test_an_address_with_a_written_password_is_refused_without_repeating_it(
    home: Path, url: str
) -> None:
    done = run("sources", "add", url)
    assert done.exit_code == 1
    assert "${WIKI_TOKEN}" in done.output
    assert not {"password@", "abc", "u:secret"} & set(done.output.split("'"))
    assert url not in done.output


def test_a_source_that_came_with_a_home_is_not_synced_before_it_is_added_again(
    home: Path, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(site)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another person"))
    assert "added by somebody else" in run("sources", "sync").output
    assert site.requests == []
    add(site)
    assert run_json("sources", "sync")["synced"][0]["new"] == 2


def test_forgetting_a_document_removes_its_copy(home: Path, site: Site) -> None:
    add(site)
    run_json("sources", "sync")
    certificate = run_json("forget", "seal.html")
    assert certificate["files_removed"] == ["sources/mirrors/wiki/seal.html"]
    assert not (home / "sources" / "mirrors" / "wiki" / "seal.html").exists()


def test_metrics_name_the_sources(home: Path, site: Site) -> None:
    from hades.surfaces.rest.services import Exposition

    add(site)
    run_json("sources", "sync")
    text = Exposition().text(home).decode()
    assert 'hades_source_documents{source="wiki"} 2.0' in text
    assert 'hades_source_failures{source="wiki"} 0.0' in text
    assert 'hades_source_age_seconds{source="wiki"}' in text


def test_the_flow_syncs_what_is_due_and_fails_where_a_source_does(home: Path, site: Site) -> None:
    add(site)
    report = run_json("run", "sync_sources")["report"]["synced"]
    assert [row["new"] for row in report] == [2]
    assert run_json("run", "sync_sources")["report"]["synced"] == []
    site.fault = lambda path, headers: (401, {}, [])
    failed = run("run", "sync_sources", "-p", "due=false")
    assert failed.exit_code == 1
    assert "0 sources in step; wiki: " in failed.output
    assert documents(home) == {"seal.html", "tide.html"}


def test_an_unknown_key_of_a_source_is_named_with_the_nearest_one(
    home: Path, tmp_path: Path
) -> None:
    text = "sources:\n  wiki:\n    url: https://example.org\n    every_hour: 3\n"
    (tmp_path / "hades.yaml").write_text(text)
    assert "did you mean 'every_hours'" in run("sources", "list").output


def test_a_sync_reads_only_what_changed_into_the_graph_and_a_build_reads_everything(
    home: Path, site: Site
) -> None:
    site.pages |= {f"/p{number}": page(f"P{number}", f"Page {number}.") for number in range(9)}
    site.pages["/empty"] = b"<p></p>"
    add(site)
    assert run_json("sources", "sync")["synced"][0]["graph"]["quarantined"] == {"empty": 1}
    site.pages["/seal"] = page("Seal", "The harbour seal moved to pier ten.")
    del site.pages["/tide"]
    graph = run_json("sources", "sync")["synced"][0]["graph"]["documents"]
    assert (graph["read"], graph["changed"], graph["removed"]) == (1, 1, 1)
    assert run_json("status")["quarantine"] == 1
    again = run_json("build")["builds"][0]["sources"]["sources"][0]["documents"]
    assert (again["read"], again["unchanged"], again["removed"]) == (10, 10, 0)
    assert "pier ten" in run("query", "where does the harbour seal sleep?").stdout


def test_rights_of_a_source_hold_after_the_next_sync_without_a_night(
    home: Path, site: Site
) -> None:
    add(site, "--rights", "seal*=hr,user:ann")
    run_json("sources", "sync")
    run_json("publish")

    def shown(*options: str) -> set[str]:
        question = ("query", "where does the harbour seal sleep at tide?", "--anyway", *options)
        return {passage["document"] for passage in run_json(*question)["passages"]}

    everything = {"seal.html", "tide.html"}
    assert shown() == shown("--as-user", "ann") == shown("--groups", "hr") == everything
    assert shown("--as-user", "bob") == {"tide.html"}
    add(site, "--rights", "*=public", "--rights", "tide*=")
    run_json("sources", "sync")
    assert shown("--as-user", "ann") == {"seal.html"}
    assert shown() == everything
    assert "PATTERN=READERS" in run("sources", "add", site.url, "--rights", "hr").output
