"""The open graph of this process: opening the model costs more than an answer, so tasks share it."""

from __future__ import annotations

from functools import cache

from hades.build_state.ledger import digest_of
from hades.retrieval.turn.answers import Answers
from hades.settings import load_settings
from hades.wiring import open_answers


def open_graph() -> Answers:
    """The graph of the settings; other settings open another one."""
    return _open(digest_of(load_settings().masked()))


@cache
def _open(settings: str) -> Answers:
    return open_answers(load_settings())
