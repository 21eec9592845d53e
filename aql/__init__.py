"""Query texts: one query a file, `folder/verb_object.aql`, with a header that says binds, result
and index.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load(name: str) -> str:
    """The text of a query by its folder and name, such as `search/nearest_exact`."""
    folder, _, verb_object = name.partition("/")
    return files(__name__).joinpath(folder, f"{verb_object}.aql").read_text("utf-8")
