"""`hades tag`: names of snapshots that are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from hades.night.history import CURRENT, remove_tag, resolve_snapshot, set_tag
from hades.settings.load import load_settings
from hades.snapshot.manifest import pins, root_of
from hades.surfaces.cli.output import Answer, argument, local_command, option, table


@local_command("tag", "RW")
def tag_snapshot(
    name: Annotated[str | None, argument("Name of the tag.", "[NAME]")] = None,
    snapshot: Annotated[
        str, argument("Snapshot id, its beginning, a tag or a day; by default what serves.")
    ] = CURRENT,
    list_all: Annotated[bool, option("List the tags.", "--list")] = False,
    remove: Annotated[
        str | None, option("Let go of a tag; its snapshot may be pruned.", metavar="NAME")
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
