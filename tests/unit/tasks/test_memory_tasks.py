"""Memory from a flow: each task opens the memory of the settings and returns what is needed
downstream.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.settings.load import load_settings
from hades.wiring import open_memory
from tasks import memory as tasks
from tasks.unit import without_server
from tests.homes import live_in


def test_the_scenario_runs_as_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(tmp_path, monkeypatch)
    first = datetime(2024, 1, 10, tzinfo=UTC)
    with open_memory(load_settings()) as memory:
        x = memory.add("x", "rejected because of bug y", valid_from=first)
        memory.add("bug_y", "bug y corrupts data", valid_from=first)
        memory.add("refactoring", "the data layer was rewritten")
        memory.link("x", "bug_y", "rejected_because", valid_from=first)
    with without_server():
        facts = [{"relation": "viable_after_fix", "target": "refactoring"}]
        done = tasks.handle_fact_change(x.id, "bug y is fixed", facts)
        assert [edge["relationship_type"] for edge in done["obsolete_edges"]] == [
            "rejected_because"
        ]
        change = tasks.find_edge_change("x", "rejected_because", "viable_after_fix")
        assert change["at"] == done["new_state"]["valid_from"].replace("Z", "+00:00")
        assert tasks.find_edge_change("x", "blocked_by", "enabled_by")["at"] is None
        then = tasks.query_at_time("x", first)
        assert (then["state"]["id"], len(then["edges"])) == (x.id, 1)
        assert tasks.query_at_time("x", datetime(2020, 1, 1, tzinfo=UTC))["state"] is None
        assert tasks.promote_memory("x", "a week passed", "still viable")["state"]["version"] == 3
        assert tasks.check_memory()["problems"] == []
