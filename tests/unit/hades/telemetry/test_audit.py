"""Every call leaves a line, reads and writes in files of their own, whichever way the call ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from hades.telemetry.logs import Audit

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_reads_and_writes_are_kept_apart(tmp_path):
    audit = Audit(tmp_path / "logs", now=lambda: NOON)
    with audit.call("RO", "query"):
        pass
    with audit.call("RW", "feedback"):
        pass
    (read,) = lines(tmp_path / "logs" / "audit_ro.jsonl")
    (written,) = lines(tmp_path / "logs" / "audit_rw.jsonl")
    assert (read["at"], read["mode"], read["path"], read["status"]) == (
        NOON.isoformat(),
        "RO",
        "query",
        "ok",
    )
    assert written["path"] == "feedback"
    assert read["ms"] >= 0


def test_a_call_that_fails_is_written_with_its_error_and_fails(tmp_path):
    with pytest.raises(ValueError), Audit(tmp_path).call("RO", "query"):
        raise ValueError("no")
    assert lines(tmp_path / "audit_ro.jsonl")[0]["status"] == "ValueError"


def test_a_folder_that_cannot_be_written_does_not_cost_the_answer(tmp_path):
    (tmp_path / "logs").write_text("a file, not a folder", encoding="utf-8")
    with Audit(tmp_path / "logs").call("RO", "query"):
        answered = True
    assert answered
