"""A question is answered from the snapshot while the database is away, and the answer says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hades.stores.arango import client
from tests.command_line import run, run_json


@pytest.fixture
def address_of_nobody() -> Iterator[str]:
    """An address where nothing listens, and nothing else can while the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def hung_server() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        listening.setblocking(False)
        yield listening


def test_a_question_waits_once_for_a_server_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hung_server: socket.socket
) -> None:
    """A snapshot needs no database: one request finds out, and no other is sent."""
    home_that_published(tmp_path, monkeypatch)
    go_to_server(monkeypatch, f"http://127.0.0.1:{hung_server.getsockname()[1]}")
    done = run("query", "Where does the Rhine flow?")
    assert done.exit_code == 0
    assert "North Sea" in done.output
    assert "The database did not answer: memory was left out" in " ".join(done.output.split())
    assert connections(hung_server) == 1


def test_an_answer_about_the_whole_corpus_waits_once_for_a_server_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hung_server: socket.socket
) -> None:
    """Its overview is of rows: without them the snapshot answers."""
    home_that_published(tmp_path, monkeypatch)
    go_to_server(monkeypatch, f"http://127.0.0.1:{hung_server.getsockname()[1]}")
    done = run("answer", "What is this about?")
    assert done.exit_code == 0
    assert connections(hung_server) == 1


def test_a_command_that_needs_rows_gives_a_server_that_hangs_up_after_one_short_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hung_server: socket.socket
) -> None:
    """What reads all rows waits ten minutes for a large answer, and not for the first one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client, "ANSWER_S", 0.3)
    go_to_server(monkeypatch, f"http://127.0.0.1:{hung_server.getsockname()[1]}")
    done = run("overview")
    assert done.exit_code == 1
    assert "did not answer within 0.3 s; is the server up?" in " ".join(done.output.split())
    assert connections(hung_server) == 1


def test_an_answer_names_the_database_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address_of_nobody: str
) -> None:
    home_that_published(tmp_path, monkeypatch)
    go_to_server(monkeypatch, address_of_nobody)
    done = run("query", "Where does the Rhine flow?")
    assert done.exit_code == 0
    output = " ".join(done.output.split())
    assert "North Sea" in output
    assert "The database did not answer: memory was left out" in output
    assert "The turn was not logged" in output
    assert "less busy machine" not in output
    assert "write journal" not in output


def connections(server: socket.socket) -> int:
    """How many connections were made to a server that accepted none yet."""
    number = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            number += 1
    return number


def home_that_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of one page with a snapshot."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADES_EMBEDDER", "hashing")
    (tmp_path / "page.md").write_text("# Rivers\n\nThe Rhine flows to the North Sea.\n")
    run_json("ingest", "documents", ".")
    run_json("publish")


def go_to_server(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """From now on the store is an ArangoDB server at this address."""
    monkeypatch.setenv("HADES_STORE", "arango")
    monkeypatch.setenv("HADES_ARANGO_URL", url)
    monkeypatch.setenv("HADES_ARANGO_USER", "reader")
    monkeypatch.setenv("HADES_ARANGO_PASSWORD", "secret")
