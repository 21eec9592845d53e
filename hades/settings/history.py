"""The section `history:` of hades.yaml: how many commits of a repository are read."""

from __future__ import annotations

from pydantic import Field

from hades.settings.hirag import Section


class HistorySettings(Section):
    """Bounds of the history that `hades ingest workspace` reads."""

    max_commits: int = Field(2_000, ge=0, description="newest commits that are read; 0: none")
    max_age_days: int = Field(1_826, ge=1, description="commits older than this before the newest one are not read")
    keep_emails: bool = Field(False, description="keep e-mail addresses in messages and names of authors")
