"""A log line is one JSON object that leads to the turn it speaks of, and never holds a secret or a
whole answer.
"""

from __future__ import annotations

import io
import json
import logging

import pytest

from hades.settings.load import load_settings
from hades.telemetry.logs import MASK, Masking, configure_logs
from hades.wiring import open_hades
from tests.homes import settings_of

logger = logging.getLogger("hades.test")
PASSWORD = 'correct"horse\\battery'
TOKEN = "hades_0123abcd_" + "A" * 43


@pytest.fixture(autouse=True)
def loggers_as_before():
    root, names = logging.getLogger(), ("hades", "tasks", "flows", "models")
    handlers, levels = root.handlers[:], [logging.getLogger(name).level for name in names]
    yield
    root.handlers[:] = handlers
    for name, level in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def lines(capsys):
    """Every line that was logged so far, parsed."""
    configure_logs("json", "info", [PASSWORD])
    said: list[str] = []

    def read():
        said.extend(capsys.readouterr().err.splitlines())
        return list(map(json.loads, said))

    return read


def test_a_line_is_an_object_with_the_fields_of_the_record(lines):
    logger.info(
        "answered %s", "well", extra={"query_id": "q_1", "ms": 1.5, "reasons": ("timeout",)}
    )
    logger.info("later\nwith a second line")
    first, second = lines()
    assert list(first)[:4] == ["at", "level", "logger", "message"]
    assert first["at"].endswith("+00:00")
    assert (first["level"], first["logger"], first["message"]) == (
        "info",
        "hades.test",
        "answered well",
    )
    assert (first["query_id"], first["ms"], first["reasons"]) == ("q_1", 1.5, ["timeout"])
    assert second["message"] == "later\nwith a second line"
    assert "query_id" not in second


def test_an_exception_is_a_field_with_its_trace(lines):
    try:
        raise ValueError(f"no login with {PASSWORD}")
    except ValueError:
        logger.exception("failed")
    error = lines()[0]["error"]
    assert error["type"] == "ValueError"
    assert "Traceback" in error["trace"]
    assert PASSWORD not in error["trace"]


@pytest.mark.parametrize(
    "text",
    [
        f"login with {PASSWORD}",
        f"token {TOKEN} was refused",
        "Authorization: Bearer abcdef.ghijkl-123",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "http://user:swordfish@host:8529/_db",
        "api_key=sk-verysecret&x=1",
        '{"password": "swordfish"}',
    ],
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_reaches_a_line(text, form, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    configure_logs(form, "info", [PASSWORD])
    logger.info("%s", text, extra={"seen": text, "nested": {"deep": [text]}})
    try:
        raise RuntimeError(text)
    except RuntimeError:
        logger.exception("failed")
    said = stream.getvalue()
    assert MASK in said
    for secret in (
        "swordfish",
        "verysecret",
        TOKEN,
        "dXNlcjpwYXNzd29yZA",
        "abcdef.ghijkl",
        PASSWORD,
    ):
        assert secret not in said
        assert json.dumps(secret)[1:-1] not in said


def test_the_secrets_of_the_settings_are_the_ones_that_are_masked(tmp_path):
    variables = {"HADES_ARANGO_PASSWORD": PASSWORD, "HADES_LLM_API_KEY": "sk-0123456789"}
    settings = load_settings(variables, tmp_path)
    assert sorted(settings.secrets()) == sorted(variables.values())
    masking = Masking(settings.secrets())
    assert masking.text("sk-0123456789 and sk-012") == f"{MASK} and sk-012"
    assert all(secret not in json.dumps(settings.masked()) for secret in settings.secrets())


def test_a_field_is_cut_before_it_is_a_whole_answer(lines):
    logger.info("big", extra={"answer": "x" * 50_000})
    field = lines()[0]["answer"]
    assert len(field) < 2_100
    assert field.endswith("(48000 more characters)")


def test_configuring_again_replaces_what_was_configured(capsys):
    configure_logs("json", "info")
    configure_logs("text", "warning")
    logger.info("unheard")
    logger.warning("heard")
    assert capsys.readouterr().err == "WARNING hades.test: heard\n"


def test_a_turn_is_one_line_at_info_with_its_id_and_neither_question_nor_answer(lines, tmp_path):
    (tmp_path / "page.md").write_text(
        "# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n", encoding="utf-8"
    )
    settings = settings_of(tmp_path / "home")
    with open_hades(settings) as hades:
        hades.ingest.documents(tmp_path / "page.md")
        hades.publish()
        before = len(lines())
        found = hades.retrieve("where does the Rhine flow?", recipe="lexical")
    (line,) = [line for line in lines()[before:] if line["message"] == "answered"]
    assert found.passages
    assert (line["query_id"], line["snapshot"], line["passages"]) == (
        found.query_id,
        found.snapshot,
        1,
    )
    assert "Rhine" not in json.dumps(lines()[before:])
