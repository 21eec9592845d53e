"""`hades trust`: which folders may say in their hades.yaml where texts and credentials go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hades.errors import SettingsError
from hades.settings.load import FILE_NAME, configuration_folder, read_file
from hades.settings.tree import without_credentials
from hades.settings.trust import fingerprint_of, guarded_values, set_trust, trusted_folders
from hades.surfaces.cli.output import Answer, argument, local_command, option, table


@local_command("trust")
def trust_folder(
    path: Annotated[Path, argument("Folder of the hades.yaml.", "[PATH]")] = Path("."),
    list_all: Annotated[bool, option("List the trusted folders.", "--list")] = False,
    remove: Annotated[bool, option("Trust the folder no longer.", "--remove")] = False,
) -> Answer:
    """Let the hades.yaml of a folder name endpoints, stores and paths outside the folder.

    Read the file first: with your credentials in the environment, it decides who receives them.
    When these values change, the folder has to be trusted again. HADES_TRUST_FOLDER=1 trusts the
    working directory of a server or a CI job.
    """
    if list_all and remove:
        raise typer.BadParameter("--list and --remove exclude each other")

    if list_all:
        folders = sorted(trusted_folders(configuration_folder()))
        return Answer({"folders": folders}, folders or ("no folder is trusted",))

    folder = path.resolve()
    if remove:
        set_trust(folder, None, configuration_folder())
        return Answer({"removed": str(folder)}, (f"{folder} is not trusted",))

    if not (folder / FILE_NAME).is_file():
        raise SettingsError(f"{folder} has no {FILE_NAME}; give the folder that holds it")

    guarded = guarded_values(read_file(folder / FILE_NAME), folder)
    values = {}
    for key, value in guarded.items():
        values[key] = without_credentials(str(value))

    if not guarded:
        sentence = f"{folder / FILE_NAME} names nothing that needs trust; nothing was changed"
        return Answer({"trusted": None, "values": {}}, (sentence,))

    kept_in = set_trust(
        folder,
        fingerprint_of(guarded),
        configuration_folder(),
    )
    document = {
        "trusted": str(folder),
        "values": values,
        "file": str(kept_in),
    }
    view = (table(("key", "value"), values.items()), f"{folder} is trusted for these values")
    return Answer(document, view)
