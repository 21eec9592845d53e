"""Commands that write the graph of this machine to a folder and read it back: backup, restore, export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hades.surfaces.capabilities.capability import WRITES_HOME, LocalCommand, Request, Shell


class BackupRequest(Request):
    """Write the store, the snapshots, the registry and the reports to a folder, each file with its hash.

    Services may keep running. Caches are left out: they are rebuilt from content.
    """

    target: Annotated[Path, Shell(metavar="TARGET")] = Field(description="Folder to write; it must be empty.")
    rows: bool = Field(False, description="Write rows as Parquet, which any store can load; ArangoDB always does.")
    logs: bool = Field(False, description="Also the audit and alert logs.")
    dated: bool = Field(False, description="Write to a folder inside TARGET named by the time.")
    keep: Annotated[int, Field(ge=1)] | None = Field(
        None, description="With --dated: number of newest backups to keep."
    )

    @model_validator(mode="after")
    def keep_counts_dated_backups(self) -> Self:
        """Only dated backups are counted."""
        if self.keep is not None and not self.dated:
            raise ValueError("--keep counts dated backups; add --dated")
        return self


class RestoreRequest(Request):
    """Restore HADES_HOME and the store from a backup; every file is checked before anything is changed.

    Stop the services of this home first.
    """

    source: Annotated[Path, Shell(metavar="SOURCE")] = Field(description="Folder that `hades backup` wrote.")
    force: bool = Field(False, description="Also where a graph exists: its parts are set aside, not deleted.")


class ExportRequest(Request):
    """Write memory and graph as text that other tools can read: one file for each collection, without loss."""

    target: Annotated[Path, Shell(metavar="TARGET")] = Field(description="Folder to write; it must be empty.")
    form: Literal["jsonl", "markdown"] = Field("jsonl", description="JSON Lines for programs, Markdown for people.")
    only: Literal["all", "memory", "graph"] = Field("all", description="What is written.")


class ImportRequest(Request):
    """Write the rows of an export into the store; rows with the same key are replaced. Then run `hades publish`.

    Every file is checked against its hash before the first row is written.
    """

    source: Annotated[Path, Shell(metavar="SOURCE")] = Field(description="Folder that `hades export` wrote.")
    seal: bool = Field(False, description="Accept files that were edited: count and hash them again first.")


BACKUP_COMMANDS = (
    LocalCommand(("backup",), BackupRequest, "hades.surfaces.cli.backup_views:run_backup", WRITES_HOME, ("target",)),
    LocalCommand(("export",), ExportRequest, "hades.surfaces.cli.export_views:run_export", WRITES_HOME, ("target",)),
    LocalCommand(("import",), ImportRequest, "hades.surfaces.cli.export_views:run_import", WRITES_HOME, ("source",)),
    LocalCommand(("restore",), RestoreRequest, "hades.surfaces.cli.backup_views:run_restore", WRITES_HOME,
                 ("source",)),
)  # fmt: skip
