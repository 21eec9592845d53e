"""The library: what a knowledge graph that answers with cited paths means. No Prefect inside."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hades.compat.pathrag import MemoryEnhancedPathRAG
    from hades.wiring import open_hades

__all__ = ["MemoryEnhancedPathRAG", "open_hades"]


def __getattr__(name: str) -> Any:
    """A public name, imported when it is asked for: the package itself must stay light."""
    if name == "open_hades":
        from hades.wiring import open_hades

        return open_hades
    if name == "MemoryEnhancedPathRAG":
        from hades.compat.pathrag import MemoryEnhancedPathRAG

        return MemoryEnhancedPathRAG
    raise AttributeError(f"module 'hades' has no attribute {name!r}")
