"""Context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from hades.build.context import BuildContext
from hades.ports.store import GraphStore, Mode
from hades.settings.load import load_settings
from hades.wiring import open_build_context, open_store
from tasks.artifacts import progress_of

# What a task opens for itself: settings are read and connections made inside it, never handed to it.


@contextmanager
def opened_store(mode: Mode) -> Iterator[GraphStore]:
    """The store of the effective settings, closed at the end."""
    with closing(open_store(load_settings(), mode)) as store:
        yield store


@contextmanager
def build_context(what: str) -> Iterator[BuildContext]:
    """The context of the effective settings, with its progress shown where this unit runs."""
    with open_build_context(load_settings(), progress=progress_of(what)) as context:
        yield context
