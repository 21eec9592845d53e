"""What changed is asked over REST and MCP as on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door
from hades.surfaces.mcp.server import ToolService, build_server
from hades.wiring import open_hades
from tests.homes import settings_of
from tests.integration.rest_site import serving
from tests.mcp_client import call_tool

QUESTION = "What changed about the ferry since 2024-01-02?"
BEFORE = "# Ferry\n\nThe ferry leaves at seven.\n"
AFTER = "# Ferry\n\nThe ferry leaves at nine.\n"


@pytest.mark.integration
def test_rest_and_mcp_answer_what_changed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home")
    pages = tmp_path / "pages"
    pages.mkdir()
    for day, text in enumerate((BEFORE, AFTER), 1):
        (pages / "ferry.md").write_text(text, "utf-8")
        with open_hades(settings) as hades:
            hades.ingest.documents(pages)
            hades.build(as_of=datetime(2024, 1, 2 * day, tzinfo=UTC))
    with serving(settings) as site:
        paths = ("/v1/query", "/v1/answer")
        replies = [site.client.post(path, json={"query": QUESTION}).json() for path in paths]
    service = ToolService(settings, Door(Mode.READ_ONLY))
    try:
        tool = call_tool(build_server(service), "hades_answer", {"query": QUESTION})
    finally:
        service.close()
    for reply in (*replies, tool.structured_content):
        (row,) = reply["changes"]["statements"]
        assert row["before"] == "The ferry leaves at seven."
        assert row["now"] == "The ferry leaves at nine."
        assert row["now_state"].startswith("since 2024-01-04 (snapshot g")
