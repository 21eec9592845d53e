"""Tokens open what they should, are kept as hashes, and stop opening at once."""

import json
import stat
from datetime import UTC, datetime

import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import (
    Caller,
    CallerRefused,
    TokenError,
    Tokens,
    covers,
    require,
    without_tokens,
)

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_token_says_who_calls_and_what_they_may(tmp_path):
    tokens = Tokens(tmp_path)
    text, made = tokens.add("explorer", Mode.READ_WRITE, AT, "team-a")
    assert tokens.caller(text) == Caller("explorer", Mode.READ_WRITE, "team-a")
    assert made.created_at == "2026-01-02T00:00:00+00:00"


@pytest.mark.parametrize(
    "wrong", ["", "hades_", "hades_00000000_" + "a" * 43, "Bearer x", "\ud800", "x" * 10_000]
)
def test_what_is_no_token_opens_nothing(tmp_path, wrong):
    tokens = Tokens(tmp_path)
    assert tokens.caller(wrong) is None
    tokens.add("somebody", Mode.READ_ONLY, AT)
    assert tokens.caller(wrong) is None


def test_the_right_id_with_another_secret_opens_nothing(tmp_path):
    tokens = Tokens(tmp_path)
    text, _ = tokens.add("somebody", Mode.READ_ONLY, AT)
    assert tokens.caller(text[:-1] + ("a" if text[-1] != "a" else "b")) is None


def test_only_a_hash_is_on_the_disk_and_only_its_owner_can_read_it(tmp_path):
    text, made = Tokens(tmp_path).add("somebody", Mode.READ_ONLY, AT)
    file = tmp_path / "tokens.json"
    assert text not in file.read_text()
    assert text.split("_", 2)[2] not in file.read_text()
    assert json.loads(file.read_text())["tokens"][0]["sha256"] == made.sha256
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_revoked_token_opens_nothing_in_a_service_that_runs(tmp_path):
    running, console = Tokens(tmp_path), Tokens(tmp_path)
    text, _ = console.add("somebody", Mode.READ_ONLY, AT)
    other, _ = console.add("other", Mode.READ_ONLY, AT)
    assert running.caller(text) is not None
    console.revoke("somebody")
    assert running.caller(text) is None
    assert running.caller(other) is not None
    assert [token.name for token in running.all()] == ["other"]


def test_names_are_given_once_and_must_exist_to_be_revoked(tmp_path):
    tokens = Tokens(tmp_path)
    tokens.add("somebody", Mode.READ_ONLY, AT)
    with pytest.raises(TokenError, match="already"):
        tokens.add("somebody", Mode.ADMIN, AT)
    with pytest.raises(TokenError, match="hades token list"):
        tokens.revoke("nobody")
    with pytest.raises(TokenError, match="cannot name a token"):
        tokens.add("two words", Mode.READ_ONLY, AT)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(TokenError, match=r"tokens\.json"):
        Tokens(tmp_path).all()


def test_tokens_are_masked_in_texts_for_logs(tmp_path):
    text, _ = Tokens(tmp_path).add("somebody", Mode.READ_ONLY, AT)
    assert without_tokens(f"/v1/x/{text}/y") == "/v1/x/hades_********/y"
    assert text.split("_", 2)[2] not in without_tokens(f"a{text}b")


def test_modes_cover_what_is_below_them():
    assert covers(Mode.ADMIN, Mode.READ_WRITE)
    assert not covers(Mode.READ_ONLY, Mode.READ_WRITE)
    require(Caller("x", Mode.READ_WRITE), Mode.READ_ONLY)
    with pytest.raises(CallerRefused, match="needs 'admin'"):
        require(Caller("x", Mode.READ_WRITE), Mode.ADMIN)
