"""`hades tag`, `branch` and `merge`: snapshots with names, and homes beside the home."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from hades.errors import SettingsError
from hades.night.history import CURRENT, check_name, remove_tag, resolve_snapshot, set_tag
from hades.night.release.branch import create_branch, drop_branch, list_branches
from hades.night.release.merge import merge_branch
from hades.ports.services import utc_now
from hades.ports.store import Mode
from hades.settings.load import for_branch, load_settings, require_embedded
from hades.snapshot.pointer import pins, root_of, served
from hades.surfaces.cli.output import (
    Answer,
    argument,
    list_records,
    local_command,
    option,
    table,
)
from hades.wiring import hold_build, open_store, open_written_store


@local_command("tag", "RW")
def tag_snapshot(
    name: Annotated[str | None, argument("Name of the tag.", "[NAME]")] = None,
    snapshot: Annotated[
        str, argument("Snapshot id, its beginning, a tag or a day; by default what serves.")
    ] = CURRENT,
    list_all: Annotated[bool, option("List the tags.", "--list")] = False,
    remove: Annotated[
        str | None,
        option(
            "Let go of a tag; its snapshot may be pruned.",
            metavar="NAME",
        ),
    ] = None,
) -> Answer:
    """Name a snapshot and keep it, whatever later nights prune.

    Every command that takes a snapshot takes a tag. Forgetting is stronger: a tag does not keep
    what was forgotten.
    """
    if (name is not None) + list_all + (remove is not None) != 1:
        raise typer.BadParameter("give a NAME, --list or --remove NAME")

    home = load_settings().home
    if name is not None:
        snapshot_id = resolve_snapshot(home, snapshot)
        set_tag(home, name, snapshot_id)
        return Answer({"tag": name, "snapshot": snapshot_id}, (f"{name} is {snapshot_id}",))

    if remove is not None:
        remove_tag(home, remove)
        return Answer({"removed": remove}, (f"the tag {remove} is gone",))

    tags = pins(root_of(home))
    view = table(("tag", "snapshot"), tags.items()) if tags else "there is no tag"
    return Answer({"tags": tags}, (view,))


@local_command("branch", "RW")
def branch_home(
    name: Annotated[str | None, argument("Name of the new branch.", "[NAME]")] = None,
    list_all: Annotated[bool, option("List the branches.", "--list")] = False,
    drop: Annotated[
        str | None,
        option(
            "Remove a branch with all that was built there.",
            metavar="NAME",
        ),
    ] = None,
) -> Answer:
    """Begin a branch of the home at what serves, to build and ask there.

    `hades --branch NAME` before any command, or HADES_BRANCH=NAME, works in it. It costs next to
    nothing until one of both is written; `hades compare --before NAME` compares it with the home.
    """
    if (name is not None) + list_all + (drop is not None) != 1:
        raise typer.BadParameter("give a NAME, --list or --drop NAME")

    settings = load_settings()
    if settings.branch is not None:
        raise SettingsError(f"this is the branch {settings.branch}; unset HADES_BRANCH first")

    if name is not None:
        require_embedded(
            settings,
            "a branch",
            "`hades tag` to keep what serves",
        )
        check_name(name, pins(root_of(settings.home)))
        with hold_build("hades branch", settings):
            folder = create_branch(settings.home, name, utc_now())

        document = {
            "branch": name,
            "folder": str(folder),
            "snapshot": served(folder),
        }
        return Answer(
            document,
            (f"{name} begins at {served(folder)}: hades --branch {name} ...",),
        )

    if drop is not None:
        drop_branch(settings.home, drop)
        return Answer({"dropped": drop}, (f"the branch {drop} is gone",))

    rows = list_branches(settings.home)
    columns = "branch created from serves own_store=has_own_store own_bytes"
    view = list_records(rows, columns) if rows else "there is no branch"
    return Answer({"branches": rows}, (view,))


@local_command("merge", "RW")
def merge_into_home(
    name: Annotated[str, argument("Branch to merge.", "NAME")],
    take: Annotated[
        Literal["home", "branch"] | None,
        option("Whose version counts of a document that both changed."),
    ] = None,
) -> Answer:
    """Bring the documents that a branch added, changed or removed into the home.

    Both are compared with what the branch began with. Where both changed a document, it is named
    and nothing is merged, unless --take says whose version counts. `hades build` publishes the
    result; the branch stays until it is dropped.
    """
    settings = load_settings()
    if settings.branch is not None:
        raise SettingsError(f"this is the branch {settings.branch}; unset HADES_BRANCH first")

    branch = for_branch(settings, name)
    with (
        hold_build("hades merge", settings),
        hold_build("hades merge", branch),
        closing(open_written_store(settings)) as home_store,
        closing(open_store(branch, Mode.READ_ONLY)) as branch_store,
    ):
        report = merge_branch(
            home_store,
            branch_store,
            branch.home,
            take,
        )

    document = asdict(report)
    counts = ", ".join(f"{len(documents):,} {kind}" for kind, documents in document.items())
    hint = "run `hades build` to publish them; folders are read again, and what stands there wins"
    return Answer(document, (f"documents: {counts}", hint))
