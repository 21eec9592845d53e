"""An empty MLflow registry, made once a run by MLflow's own migrations and copied for each new
home.

The 68 migrations take two thirds of the time of a small night, and a new registry is the same file
each time.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from hades.files import hold_lock
from hades.providers import mlflow_registry as mlflow_tracker

VARIABLE = (
    "HADES_TEST_REGISTRY"  # the folder of the template; processes that tests start inherit it
)
SQLITE = "sqlite:///"


def copy_new_registries() -> None:
    """From now on a registry file that this process would migrate from nothing is a copy of the
    template.
    """
    make_client, folder = (
        mlflow_tracker._quiet_client,
        Path(os.environ[VARIABLE]),
    )  # commands are not told

    def make_client_of_copy(uri: str, *rest: Any) -> Any:
        path = Path(uri.removeprefix(SQLITE))
        if (
            uri.startswith(SQLITE) and not path.exists()
        ):  # the caller holds the lock of this registry's set-up
            put_new_registry(path, folder)
        return make_client(uri, *rest)

    mlflow_tracker._quiet_client = make_client_of_copy


def put_new_registry(path: Path, folder: Path | None = None) -> None:
    """An empty registry at this place, a copy of the template; for a home whose processes are not
    told of it too.
    """
    folder = folder or Path(os.environ[VARIABLE])
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    shutil.copyfile(_template(folder), part)
    part.rename(path)


def _template(folder: Path) -> Path:
    """The file, made by whichever process needs it first."""
    made = folder / "registry.db"
    with hold_lock(folder / "lock"):
        if not made.exists():
            import mlflow.store.db.utils as migrations
            import sqlalchemy

            part = folder / "registry.part"
            engine = sqlalchemy.create_engine(f"{SQLITE}{part}")
            migrations._initialize_tables(engine)
            engine.dispose()
            part.rename(made)
    return made
