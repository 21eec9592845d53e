"""Whether a graph holds code; what searches code is imported where it does."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hades.ports.view import GraphView

if TYPE_CHECKING:
    from hades.retrieval.channels.code import SnapshotCode

_holds_files: WeakKeyDictionary[GraphView, bool] = WeakKeyDictionary()


def code_of_view(view: GraphView) -> SnapshotCode | None:
    """The index of a graph that holds files of a workspace; None where it holds none, which is looked up once."""
    if view not in _holds_files:
        _holds_files[view] = len(view.file_chunks()) > 0
    if not _holds_files[view]:
        return None
    from hades.retrieval.channels.code import code_of

    return code_of(view)
