"""Environment, hades.yaml, tenant: the one place that sees what the environment and the file
say.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

import yaml
from pydantic import BaseModel, ValidationError

from hades.errors import SettingsError, explain_problems, plain_message
from hades.settings.tree import (
    SECTIONS,
    CacheSettings,
    Guard,
    Settings,
    guard_of,
    is_secret,
    variable_of,
    without_credentials,
)
from hades.settings.trust import check_trust
from schemas.sources import RemoteSource

FOLDER = "tenants"
LONGEST_DATABASE = 64  # of ArangoDB's traditional names, in bytes
_NAME = re.compile(r"[a-z0-9_-]{1,63}")


def check_name(name: object) -> str:
    """The name, or an error: it becomes a folder and a part of a database's name, so nothing else
    may stand in it.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SettingsError(
            f"{variable_of('tenant')} is {name!r}; a tenant's name has 1 to 63 of a-z, 0-9, _ and "
            "-, for example team-a"
        )

    return name


def for_tenant(settings: Settings, name: str) -> Settings:
    """The same settings with everything that is kept moved into the tenant's own place.

    Files go to `tenants/<name>` under the home and under every cache folder that is named; ArangoDB
    gets a database `<database>_<name>`.
    """
    check_name(name)
    if settings.tenant is not None:
        raise SettingsError(
            f"these settings are those of tenant {settings.tenant!r} already; start from those of "
            "none"
        )

    database = f"{settings.arango_database}_{name}"
    if settings.store == "arango" and len(database.encode()) > LONGEST_DATABASE:
        raise SettingsError(
            f"database {database!r} of tenant {name!r} has {len(database.encode())} bytes, "
            f"ArangoDB allows {LONGEST_DATABASE}; shorten {variable_of('tenant')} or "
            f"{variable_of('arango_database')}"
        )

    changes = {
        "tenant": name,
        "home": inside(settings.home, name),
        "arango_database": database,
        "cache": _move_cache_folders(settings.cache, lambda path: inside(path, name)),
    }
    return settings.model_copy(update=changes)


BRANCHES = "branches"


def check_branch(name: str) -> str:
    """The name of a branch, which becomes a folder."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{variable_of('branch')} is {name!r}; a branch's name has 1 to 63 of a-z, 0-9, _ and "
            "-, for example try-new-chunking"
        )

    return name


def for_branch(settings: Settings, name: str) -> Settings:
    """The same settings in a branch of the home, with a registry of its own."""
    home = settings.home / BRANCHES / check_branch(name)
    require_embedded(
        settings,
        "a branch",
        "unset HADES_BRANCH",
    )

    if not home.is_dir():
        raise SettingsError(
            f"there is no branch {name!r} in {settings.home}; `hades branch {name}` without "
            "HADES_BRANCH makes it"
        )

    cache = _move_cache_folders(settings.cache, lambda path: path / BRANCHES / name)
    changes = {
        "branch": name,
        "home": home,
        "cache": cache,
        "mlflow_uri": None,
    }
    return settings.model_copy(update={**changes, "lineage_url": None})


def require_embedded(
    settings: Settings,
    subject: str,
    remedy: str,
) -> None:
    """Refuse what works on the file of the embedded store, before any server is asked."""
    if settings.store != "sqlite":
        raise SettingsError(
            f"{subject} works on the file of the embedded store, and HADES_STORE={settings.store} "
            f"has none; use HADES_STORE=sqlite, or {remedy}"
        )


def enter_branch(name: str) -> Callable[[], None]:
    """Let this process work in a branch, as if its environment said so; what it calls when it
    leaves.
    """
    variable = variable_of("branch")
    before = os.environ.get(variable, "")
    os.environ[variable] = name
    return lambda: os.environ.update({variable: before})


def branches(home: Path) -> list[str]:
    """The branches of a home, by name."""
    return _folders_named(home / BRANCHES)


def _folders_named(folder: Path) -> list[str]:
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(path.name for path in entries if path.is_dir() and _NAME.fullmatch(path.name))


def _move_cache_folders(
    cache: CacheSettings,
    move: Callable[[Path], Path],
) -> CacheSettings:
    """The same with every folder that is named moved."""
    folders = cache.model_dump(
        include={"nvme_cache_path", "reliable_store_path"},
        exclude_none=True,
    )
    return cache.model_copy(update={name: move(path) for name, path in folders.items()})


def tenants(home: Path) -> list[str]:
    """Tenants that have a folder under the home of all, by name."""
    return _folders_named(home / FOLDER)


def inside(path: Path | str, name: str) -> Path:
    """A tenant's own part of a folder that all share."""
    return Path(path) / FOLDER / name


FILE_NAME = "hades.yaml"
_FIELDS = {variable_of(name): name for name in Settings.model_fields}
Section = TypeVar("Section", bound=BaseModel)


def load_settings(
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    file: Path | None = None,
) -> Settings:
    """The effective settings, or `SettingsError` naming each key, its value and what was expected.

    Relative paths are taken from `cwd`. An empty variable counts as not set. `file` stands in the
    place of the hades.yaml of the folder.
    """
    env = os.environ if env is None else env
    cwd = Path.cwd() if cwd is None else cwd
    file = cwd / FILE_NAME if file is None else file
    in_file = read_file(file)

    in_environment = {}
    for variable, name in _FIELDS.items():
        if name not in SECTIONS and env.get(variable):
            in_environment[name] = env[variable]

    values = in_file | in_environment
    tenant = values.pop("tenant", None)
    branch = values.pop("branch", None)

    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(
            "\n".join(_explain_setting(problem) for problem in error.errors())
        ) from None

    if not settings.trust_folder:
        check_trust(
            file,
            in_file,
            in_environment,
            configuration_folder(env),
        )

    def place(path: Path) -> Path:
        return Path(os.path.normpath(cwd / path.expanduser()))

    paths = {
        "home": place(settings.home),
        "data": place(settings.data),
        "cache": _move_cache_folders(settings.cache, place),
    }
    settings = settings.model_copy(update=paths)
    if tenant is not None:
        settings = for_tenant(settings, check_name(tenant))
    if branch is None:
        return settings

    return for_branch(settings, str(branch))


def configuration_folder(env: Mapping[str, str] | None = None) -> Path | None:
    """The person's own folder of configuration for HADES; None where the system names none."""
    env = os.environ if env is None else env
    if env.get("XDG_CONFIG_HOME"):
        return Path(env["XDG_CONFIG_HOME"]) / "hades"
    if env.get("HOME"):
        return Path(env["HOME"]) / ".config" / "hades"

    return None


def unknown_variables(env: Mapping[str, str] | None = None) -> list[str]:
    """`HADES_*` variables that mean nothing to HADES, each with the nearest one that does; for
    `hades doctor`.
    """
    env = os.environ if env is None else env

    unknown = []
    for name in sorted(env):
        if name.startswith("HADES_") and not name.startswith("HADES_TEST_") and name not in _FIELDS:
            unknown.append(name)

    return [f"{name}{nearest(name, list(_FIELDS))}" for name in unknown]


def override(
    section: Section,
    values: Mapping[str, Any],
    owner: str,
) -> Section:
    """A section with these keys set; a key or a value that means nothing is named."""
    fields = type(section).model_fields
    if unknown := [key for key in values if key not in fields]:
        raise SettingsError(f"{owner} has no key {unknown[0]!r}{nearest(unknown[0], list(fields))}")

    try:
        return type(section).model_validate(section.model_dump(exclude_unset=True) | dict(values))
    except ValidationError as error:
        problems = explain_problems(error.errors())
        raise SettingsError(f"{owner} cannot be set up: {problems}") from None


def read_file(path: Path) -> dict[str, Any]:
    """The values of a hades.yaml by field name, not yet checked."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{FILE_NAME} cannot be read: {error}; fix or remove it") from None

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(
            f"{FILE_NAME} is not YAML: {' '.join(str(error).split())}; fix or remove it"
        ) from None

    if document is None:
        return {}

    if not isinstance(document, dict):
        raise SettingsError(
            f"{FILE_NAME} must be a mapping of keys to values, not {type(document).__name__}"
        )

    return _keys_to_fields(document)


def _keys_to_fields(document: Mapping[Any, Any]) -> dict[str, Any]:
    """Keys as fields: `HADES_STORE`, `hades_store` and `store` are the same key, and may stand
    there once.
    """
    values: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).lower().removeprefix("hades_")
        if name not in Settings.model_fields:
            raise SettingsError(
                f"{FILE_NAME} has no key {key!r}{nearest(name, list(Settings.model_fields))}"
            )

        if name in values:
            raise SettingsError(
                f"{FILE_NAME} gives {key!r} twice under different spellings; keep one"
            )

        if guard_of(Settings.model_fields[name]) is Guard.ENVIRONMENT:
            raise SettingsError(
                f"{FILE_NAME} holds {key!r}, which belongs in the environment only "
                f"({variable_of(name)})"
            )

        values[name] = value

    return values


def _explain_setting(problem: Any) -> str:
    location = []
    for part in problem["loc"]:
        if part != "[key]":
            location.append(str(part))

    message = plain_message(str(problem["msg"]))
    if not location:
        return message

    key = ".".join([variable_of(location[0]), *location[1:]])
    if problem["type"] == "extra_forbidden":
        return f"{FILE_NAME} has no key {key!r}{nearest(location[-1], _keys_at(location[:-1]))}"

    return f"{key}{_show_value(location[0], problem['input'])}: {message[0].lower()}{message[1:]}"


def _show_value(field: str, value: object) -> str:
    """The value as a person may see it: no secret, and no mapping, whose keys are named in the
    message.
    """
    if isinstance(value, dict):
        return ""
    if is_secret(field):
        return " is set to something else"

    return f" is {without_credentials(value)!r}"


def _keys_at(location: Sequence[str]) -> list[str]:
    """The keys that hades.yaml may have at a place in the tree."""
    if len(location) == 2 and location[0] == "sources":  # its keys are names of sources
        return list(RemoteSource.model_fields)

    model: type[BaseModel] = Settings
    for part in location:
        fields = model.model_fields.items()
        field = next((field for name, field in fields if part in (name, field.alias)), None)
        shape = None if field is None else field.annotation

        if not (isinstance(shape, type) and issubclass(shape, BaseModel)):
            return []

        model = shape

    return [field.alias or name for name, field in model.model_fields.items()]


def nearest(name: str, known: Sequence[str]) -> str:
    """The known key that an unknown one may stand for, to end an error with."""
    close = difflib.get_close_matches(
        name,
        known,
        n=1,
        cutoff=0.5,
    )
    if close:
        return f"; did you mean {close[0]!r}?"

    return f"; known keys: {', '.join(known)}"


_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GX_ANALYTICS_ENABLED": "false",
    "ORT_DISABLE_TELEMETRY": "1",
}


def keep_libraries_quiet() -> None:
    """Tell libraries, before they load, not to report home. What a person set stays."""
    for variable, value in _QUIET.items():
        os.environ.setdefault(variable, value)


def socket_activation() -> dict[str, str]:
    """`LISTEN_PID` and `LISTEN_FDS`, where they are set: sockets that were opened for this
    process.
    """
    return {name: os.environ[name] for name in ("LISTEN_PID", "LISTEN_FDS") if name in os.environ}


_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
_SECRET_NAME = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6  # characters; a shorter value is too common to be masked


def fill_placeholders(text: str, env: Mapping[str, str] | None = None) -> str:
    """A text with each `${NAME}` replaced by that variable, written as addresses need it."""
    env = os.environ if env is None else env

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if not env.get(name):
            raise SettingsError(
                f"the variable {name}, which the address names as ${{{name}}}, is not set; set it "
                "in the environment"
            )

        return quote(env[name], safe="")

    return _PLACEHOLDER.sub(fill, text)


def mask_secrets(
    text: str,
    address: str,
    env: Mapping[str, str] | None = None,
) -> str:
    """A text without the values of an address's placeholders, of variables that are named like
    secrets, and without what logs in to an address.
    """
    env = os.environ if env is None else env
    secrets = {env.get(name, "") for name in _PLACEHOLDER.findall(address)}

    for name, value in env.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET:
            secrets.add(value)

    for secret in sorted(
        secrets - {""},
        key=len,
        reverse=True,
    ):
        for written in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(written, "**********")

    return str(without_credentials(text))


def child_environment(without: str, keep: str = "") -> dict[str, str]:
    """The environment for a child process, without the variables whose names begin so but one."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == keep or not name.startswith(without)
    }
