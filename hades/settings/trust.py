"""Folders whose hades.yaml a person trusts to say where texts and credentials go.

The file may have come with a cloned folder, while the credentials are the person's own. Trust is
kept in the person's configuration folder, and is asked for again when these values change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hades.errors import SettingsError
from hades.files import write_whole
from hades.settings.tree import Guard, Settings, guard_of, variable_of, without_credentials

FILE = "trusted_folders.json"


def guarded_values(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values of a hades.yaml that need a trusted folder, by dotted key."""
    return dict(
        _find_guarded(
            Settings,
            Guard.TRUST,
            values,
            folder.resolve(),
        )
    )


def _find_guarded(
    model: type[BaseModel],
    section_guard: Guard,
    values: Mapping[str, Any],
    folder: Path,
) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        key = field.alias or name
        value = values.get(key)
        if value is None or value == field.default:
            continue

        guard = guard_of(field, section_guard)
        shape = field.annotation
        if isinstance(value, Mapping) and isinstance(shape, type) and issubclass(shape, BaseModel):
            for inner_key, inner_value in _find_guarded(shape, guard, value, folder):
                yield f"{key}.{inner_key}", inner_value

            continue

        is_outside = guard is Guard.INSIDE and not _is_inside(str(value), folder)
        if is_outside or guard is Guard.TRUST:
            yield key, value


def _is_inside(path: str, folder: Path) -> bool:
    """Whether a path lies in the folder once links are followed."""
    return (folder / Path(path).expanduser()).resolve().is_relative_to(folder)


def check_trust(
    file: Path,
    values: Mapping[str, Any],
    overridden: Mapping[str, Any],
    configuration: Path | None,
) -> None:
    """Refuse a file that names, for want of a variable, what only a trusted folder may name.

    `configuration` is the person's own folder of configuration, where there is one.
    """
    folder = file.parent.resolve()
    guarded = guarded_values(values, folder)
    in_effect = [key for key in guarded if key.partition(".")[0] not in overridden]

    if not in_effect:
        return

    fingerprint = trusted_folders(configuration).get(str(folder))
    if fingerprint == fingerprint_of(guarded):
        return

    key = in_effect[0]
    value = without_credentials(str(guarded[key]))
    if fingerprint:
        state = "has changed since you trusted it"
    else:
        state = "is not trusted"

    remedy = f"`hades trust {folder}`"
    variable = variable_of(key)
    if "." not in key:
        remedy += f", or set {variable} yourself"

    raise SettingsError(
        f"{file.resolve()} sets {key} to {value!r}, which decides where your texts and credentials "
        f"go, and this folder {state}; read the file, then run {remedy}"
    )


def fingerprint_of(guarded: Mapping[str, Any]) -> str:
    """The hash of the values that need trust."""
    text = json.dumps(
        guarded,
        sort_keys=True,
        default=str,
    )
    return hashlib.sha256(text.encode()).hexdigest()


def trusted_folders(configuration: Path | None) -> dict[str, str]:
    """Each trusted folder with the hash of what it was trusted for."""
    if configuration is None or not (configuration / FILE).exists():
        return {}

    file = configuration / FILE
    try:
        folders = json.loads(file.read_text(encoding="utf-8"))
        return {str(path): str(fingerprint) for path, fingerprint in folders.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise SettingsError(
            f"{file} cannot be read as the list of trusted folders ({error}); remove it and run "
            "`hades trust` again"
        ) from None


def set_trust(
    folder: Path,
    fingerprint: str | None,
    configuration: Path | None,
) -> Path:
    """Trust a folder for these values, or, without a hash, no longer; the file that says so."""
    if configuration is None:
        raise SettingsError(
            "there is no folder for your configuration, because HOME and XDG_CONFIG_HOME are not "
            f"set; set one of them, or {variable_of('trust_folder')}=1"
        )

    folders = trusted_folders(configuration)
    folders.pop(str(folder.resolve()), None)
    if fingerprint is not None:
        folders[str(folder.resolve())] = fingerprint

    text = json.dumps(
        folders,
        indent=1,
        sort_keys=True,
    )
    return write_whole(configuration / FILE, text, 0o600)
