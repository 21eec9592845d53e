"""A tenant: a namespace of its own, so that nothing that is kept for one can be read for another."""

from __future__ import annotations

import re
from pathlib import Path

from hades.errors import SettingsError
from hades.settings.tree import Settings, variable_of

FOLDER = "tenants"
LONGEST_DATABASE = 64  # of ArangoDB's traditional names, in bytes
_NAME = re.compile(r"[a-z0-9_-]{1,63}")


def check_name(name: object) -> str:
    """The name, or an error: it becomes a folder and a part of a database's name, so nothing else may stand in it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SettingsError(
            f"{variable_of('tenant')} is {name!r}; a tenant's name has 1 to 63 of a-z, 0-9, _ and -, for example team-a"
        )
    return name


def for_tenant(settings: Settings, name: str) -> Settings:
    """The same settings with everything that is kept moved into the tenant's own place.

    Files go to `tenants/<name>` under the home and under every cache folder that is named; ArangoDB gets a database
    `<database>_<name>`.
    """
    check_name(name)
    if settings.tenant is not None:
        raise SettingsError(f"these settings are those of tenant {settings.tenant!r} already; start from those of none")
    database = f"{settings.arango_database}_{name}"
    if settings.store == "arango" and len(database.encode()) > LONGEST_DATABASE:
        raise SettingsError(
            f"database {database!r} of tenant {name!r} has {len(database.encode())} bytes, ArangoDB allows "
            f"{LONGEST_DATABASE}; shorten {variable_of('tenant')} or {variable_of('arango_database')}"
        )
    cache = settings.cache
    moved = {
        key: inside(path, name)
        for key in ("nvme_cache_path", "reliable_store_path")
        if (path := getattr(cache, key)) is not None
    }
    return settings.model_copy(
        update={
            "tenant": name,
            "home": inside(settings.home, name),
            "arango_database": database,
            "cache": cache.model_copy(update=moved),
        }
    )


def tenants(home: Path) -> list[str]:
    """Tenants that have a folder under the home of all, by name."""
    folder = home / FOLDER
    there = folder.iterdir() if folder.is_dir() else ()
    return sorted(path.name for path in there if path.is_dir() and _NAME.fullmatch(path.name))


def inside(path: Path | str, name: str) -> Path:
    """A tenant's own part of a folder that all share."""
    return Path(path) / FOLDER / name
