"""`pathrag_retrieve` behind its name: a snapshot or a moment asked for, paths or one prompt given back."""

from __future__ import annotations

from typing import Any

from hades.surfaces.mcp.calls import CallRefused, Reply
from hades.surfaces.mcp.service import Service
from hades.surfaces.mcp.shapes import Paths


def paths_of(
    service: Service, query: str, max_paths: int, domain: str | None, version: str | None, as_prompt: bool
) -> Reply:
    """The reply to one question; failures of the search come as refusals in its own words."""
    ask = service.pathrag.retrieve_and_format if as_prompt else service.pathrag.retrieve_paths
    found: dict[str, Any] = dict(ask(query, max_paths, domain, version))
    if not found["success"]:
        raise CallRefused(str(found["error"]))
    if as_prompt:
        prompt = str(found["formatted_prompt"])
        return Reply(Paths(success=True, formatted_prompt=prompt), text=prompt, query_id=found["query_id"])
    return Reply(Paths.model_validate(found), query_id=found["query_id"])
