"""Spans reach a real OTLP collector over HTTP: a turn with its stages inside it, a build with its
own.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from hades.errors import SettingsError
from hades.settings.load import load_settings
from hades.telemetry import logs as traces
from hades.wiring import open_answers
from tests.homes import publish_pages, settings_of
from tests.loopback import answering

ROOT = Path(__file__).resolve().parents[4]


class Collector:
    """Keeps every span that it is sent."""

    def __init__(self) -> None:
        self.url, self.spans, self.services = "", [], set()

    def answer(self, path, headers, body):
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert (path, headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for one in resource.resource.attributes:
                if one.key == "service.name":
                    self.services.add(one.value.string_value)
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        reply = ExportTraceServiceResponse().SerializeToString()
        return 200, {"Content-Length": str(len(reply))}, [reply]

    def named(self, name: str):
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector():
    collector = Collector()
    with answering(collector.answer) as collector.url:
        yield collector
        traces.stop_sending()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    pages = {"page.md": "# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n"}
    return publish_pages(tmp_path_factory.mktemp("traced"), pages).home


def facts(span) -> dict[str, object]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_turn_is_a_trace_whose_stages_lie_inside_it(collector, home):
    with open_answers(settings_of(home, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as answers:
        found = answers.retrieve("where does the Rhine flow?", recipe="vector")
    traces.stop_sending()
    (turn,) = collector.named("hades.turn")
    assert facts(turn)["hades.query_id"] == found.query_id
    assert facts(turn)["hades.snapshot"] == found.snapshot
    assert facts(turn)["hades.reads"] == found.telemetry.reads
    stages = [span for span in collector.spans if span.parent_span_id == turn.span_id]
    assert [span.name for span in stages] == [
        f"hades.turn.{stage.name}" for stage in found.telemetry.stages
    ]
    for span, stage in zip(stages, found.telemetry.stages, strict=True):
        assert facts(span)["hades.reads"] == stage.reads
        assert span.trace_id == turn.trace_id
        assert turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= turn.end_time_unix_nano
    assert collector.services == {"hades"}
    assert "Rhine" not in str(collector.spans)


def test_a_command_sends_its_spans_before_its_process_ends(collector, home, tmp_path, programs):
    environment = {
        **os.environ,
        "HADES_HOME": str(home),
        "HADES_EMBEDDER": "hashing",
        "PYTHONPATH": str(ROOT),
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_SERVICE_NAME": "hades-laptop",
    }
    asked = [programs / "hades", "query", "where does the Rhine flow?", "--recipe", "lexical"]
    subprocess.run(asked, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert len(collector.named("hades.turn")) == 1
    assert collector.services == {"hades-laptop"}


def test_a_unit_of_a_build_is_a_span_of_its_run(collector, monkeypatch, tmp_path):
    from tasks.unit import unit, without_server

    monkeypatch.setenv("HADES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.chdir(tmp_path)
    traces.send_to(collector.url)
    weigh = unit("weights", {})(lambda: {"changed": 3})
    with without_server(), traces.span("hades.flow.nightly"):
        assert weigh()["changed"] == 3
    traces.stop_sending()
    (run,), (stage,) = collector.named("hades.flow.nightly"), collector.named("hades.build.weights")
    assert stage.parent_span_id == run.span_id


def test_an_error_marks_the_span_and_goes_on(collector):
    traces.send_to(collector.url)
    with pytest.raises(ZeroDivisionError), traces.span("hades.test"):
        1 / 0  # noqa: B018
    traces.stop_sending()
    (span,) = collector.named("hades.test")
    assert span.status.code == span.status.STATUS_CODE_ERROR
    assert span.events[0].name == "exception"


def test_without_a_collector_nothing_of_opentelemetry_is_loaded(home, tmp_path):
    program = (
        "import sys; from hades.surfaces.cli.commands import main\n"
        "sys.argv = ['hades', 'query', 'where does the Rhine flow?', '--recipe', 'vector', "
        "'--json']\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("OTEL_")
    }
    environment |= {"HADES_HOME": str(home), "HADES_EMBEDDER": "hashing", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_collector_that_is_not_there_holds_nobody(home):
    with open_answers(
        settings_of(home, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    ) as answers:
        assert answers.retrieve("where does the Rhine flow?", recipe="lexical").passages
    traces.stop_sending()  # gives up by itself


def test_an_address_with_a_password_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="may not hold a user or password"):
        load_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:secret@127.0.0.1:4318"}, tmp_path)
