"""The library: what a knowledge graph that answers with cited paths means. No Prefect inside."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hades.compat.pathrag import MemoryEnhancedPathRAG
    from hades.ports.graph import DocumentFilter
    from hades.wiring import open_hades

__all__ = ["DocumentFilter", "MemoryEnhancedPathRAG", "open_hades"]


_HOMES = {
    "DocumentFilter": "hades.ports.graph",
    "MemoryEnhancedPathRAG": "hades.compat.pathrag",
    "open_hades": "hades.wiring",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is asked for: the package itself must stay light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hades' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
