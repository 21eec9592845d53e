"""Which files are generated, and by what."""

from __future__ import annotations

from collections.abc import Callable

from hades.surfaces.docs.cli_page import cli_page
from hades.surfaces.docs.mcp_page import mcp_page
from hades.surfaces.docs.reasons_page import reasons_page
from hades.surfaces.docs.rest_page import rest_page
from hades.surfaces.docs.schema_page import schema_page
from hades.surfaces.docs.settings_page import env_example, settings_page

WRITERS: dict[str, Callable[[], str]] = {
    ".env.example": env_example,
    "docs/reference/cli.md": cli_page,
    "docs/reference/mcp.md": mcp_page,
    "docs/reference/reasons.md": reasons_page,
    "docs/reference/rest.md": rest_page,
    "docs/reference/schema.md": schema_page,
    "docs/reference/settings.md": settings_page,
}


def generate_pages() -> dict[str, str]:
    """Every generated file, by its path from the repository's root."""
    return {name: write() for name, write in WRITERS.items()}
