"""Messages of a mailbox are read once each, deletes are followed, and passwords stay unsaid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.hades.ingest.sources.imap_server import Mailbox, mailbox
from tests.unit.hades.ingest.sources.remote_site import Syncing, syncing


def message(subject: str, text: str) -> bytes:
    lines = ["From: Ann <ann@example.org>", f"Subject: {subject}", "", text, ""]
    return "\r\n".join(lines).encode()


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with mailbox({4: message("Seal", "It sleeps."), 9: message("Tide", "It turns.")}) as opened:
        yield opened


@pytest.fixture
def home(box: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Syncing:
    monkeypatch.setenv("MAIL_PASSWORD", "open")
    return syncing(tmp_path / "home", f"imap://ann:${{MAIL_PASSWORD}}@127.0.0.1:{box.port}/INBOX")


def test_a_message_is_read_once_and_one_that_was_deleted_goes(box: Mailbox, home: Syncing) -> None:
    assert home.sync().problem == ""
    assert home.copies["INBOX/1/4.eml"] == box.messages[4]
    box.fetched.clear()
    del box.messages[4]
    box.messages[12] = message("Pump", "It hums.")
    report = home.sync()
    assert box.fetched == [12]
    assert (report.new, report.removed, report.unchanged) == (1, 1, 1)


def test_a_server_that_numbers_its_messages_anew_stops_the_sync(
    box: Mailbox, home: Syncing
) -> None:
    box.messages = {uid: message(f"M{uid}", "Text.") for uid in range(1, 21)}
    home.sync()
    box.validity = 2
    assert "20 of 20 documents are gone" in home.sync().problem
    report = home.sync(accept=True)
    assert (report.new, report.removed) == (20, 20)


def test_a_refused_login_is_named_without_the_password(
    box: Mailbox, home: Syncing, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.sync()
    monkeypatch.setenv("MAIL_PASSWORD", "mistaken-password")
    problem = home.sync().problem
    assert "LOGIN" in problem or "said" in problem
    assert "mistaken" not in problem
    assert len(home.copies) == 2


def test_a_password_is_not_sent_unencrypted_to_another_machine(tmp_path: Path) -> None:
    home = syncing(tmp_path / "home", "imap://ann@mail.example.org/INBOX")
    assert "write imaps://" in home.sync().problem
