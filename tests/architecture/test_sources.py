"""A kind of corpus is one declaration and one file: the command line, the flow and ingestion read
the declaration.
"""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

import hades.surfaces.cli.ingest  # noqa: F401 - declares the commands
from flows.ingest import ingest
from hades.surfaces.cli.output import LOCAL_COMMANDS
from schemas.sources import SOURCES, CorpusFields, SourceKind


def test_every_kind_is_declared_once() -> None:
    assert [source.kind for source in SOURCES] == list(SourceKind)


@pytest.mark.parametrize("kind", list(SourceKind))
def test_every_kind_has_a_module_that_opens_it(kind: SourceKind) -> None:
    opened = inspect.signature(import_module(f"hades.ingest.sources.{kind}").open_source)
    assert opened.bind(None, history=None, workers=0).arguments


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.kind)
def test_the_command_line_offers_every_option_of_a_kind_and_no_other(source) -> None:
    run = next(run for words, run, _ in LOCAL_COMMANDS if words == f"ingest {source.kind}")
    offered = {name.removeprefix("no_") for name in inspect.signature(run).parameters}
    assert offered == {source.argument, "phase", "edges", "domain", *source.options}
    assert set(source.options) <= set(CorpusFields.model_fields)


def test_the_flow_takes_every_option_of_a_corpus() -> None:
    assert set(inspect.signature(ingest.fn).parameters) == {*CorpusFields.model_fields, "edges"}
