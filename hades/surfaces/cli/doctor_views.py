"""`hades doctor`: what is there, what is wrong, and what to do about it. Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.cache.disk import DiskCache
from hades.cache.place import CachePlace
from hades.errors import HadesError, NotProvisioned, SettingsError
from hades.ports.clock import utc_now
from hades.ports.store import Mode
from hades.providers.minilm_weights import PACKAGES, missing_model
from hades.settings import Settings, load_settings, tenants
from hades.surfaces.cli.output import Answer
from hades.surfaces.doctor.finding import Check
from hades.surfaces.doctor.machine import check_home, check_variables, check_versions, installed
from hades.surfaces.doctor.serving import check_nights, check_snapshot
from hades.surfaces.doctor.ways_in import check_servers, check_sockets, check_tokens
from hades.wiring import model_cache, open_embedder, open_store

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def examine(*, deep: bool = False) -> Answer:
    """Every check, worst news included; done when no line says fail."""
    versions = installed()
    checks = list(check_versions(versions))
    document: dict[str, Any] = {"versions": versions}
    try:
        settings = load_settings()
    except SettingsError as error:
        checks.append(Check("settings", "fail", str(error), "fix the variable or hades.yaml"))
    else:
        document["settings"] = settings.masked()
        checks += _examine_graph(settings, document, deep)
    ok = all(check.status != "fail" for check in checks)
    return Answer({"ok": ok, "checks": [asdict(check) for check in checks], **document}, _view(checks, document), ok)


def _examine_graph(settings: Settings, document: dict[str, Any], deep: bool) -> Iterator[Check]:
    """From the ground up: what a check needs was looked at before it."""
    now = utc_now()
    yield from check_variables()
    yield _check_tenant(settings)
    yield from check_home(settings.home)
    yield from _check_store(settings, document, deep)
    yield from _check_models(settings)
    if settings.home.is_dir():
        yield from check_snapshot(settings.home, _model(settings), now, deep=deep)
        yield from check_nights(settings.home, now)
    yield _check_cache(settings, document)
    yield from check_tokens(settings.home)
    yield from check_sockets(settings)
    yield from check_servers(settings)


def _check_tenant(settings: Settings) -> Check:
    """Whose this is; for the home of all, which tenants have a part of it."""
    if settings.tenant is not None:
        return Check("tenant", "ok", f"{settings.tenant}, with a store, snapshots and caches of its own")
    there = tenants(settings.home)
    return Check("tenant", "ok", f"none{f'; folders of {len(there)}: ' + ', '.join(there) if there else ''}")


def _check_store(settings: Settings, document: dict[str, Any], deep: bool) -> Iterator[Check]:
    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            rows = sum(store.counts().values())
            document["store"] = store.describe()
            wrong = store.check() if deep else []
            server: list[Any] = getattr(store, "findings", list)()
    except NotProvisioned as error:
        yield Check("store", "warn", f"{settings.store}: {error}", "hades provision")
    except HadesError as error:
        yield Check("store", "fail", f"{settings.store}: {error}", "fix what the message names, then run doctor again")
    else:
        part = f" for {document['store']['holds']} alone" if "holds" in document["store"] else ""
        yield Check("store", "ok", f"{settings.store} answers, provisioned{part}, {rows:,} rows")
        for one in server:
            yield Check(one.name, one.status, one.found, one.next)
        for problem in wrong:
            yield Check("store", "fail", problem, "restore a backup or rebuild the store from its sources")
        if deep and not wrong:
            yield Check("store", "ok", "every page was read and is sound")


def _check_models(settings: Settings) -> Iterator[Check]:
    if settings.embedder == "minilm" and all(one.path() is None for one in PACKAGES):
        yield Check("embedder", "fail", "minilm, but its weights are missing", str(missing_model()))
    elif settings.embedder == "minilm":
        folder = model_cache(settings)
        ready = folder.is_dir() and any(folder.iterdir())
        yield Check("embedder", "ok", f"minilm, {'exported' if ready else 'exported once at first use'}")
    else:
        yield _check_embedder(settings)
    yield Check("language model", "ok", settings.llm_model or "none: extraction and summaries are extractive")


def _check_embedder(settings: Settings) -> Check:
    """Whether it can be opened; nothing is sent."""
    try:
        open_embedder(settings)
    except HadesError as error:
        return Check("embedder", "fail", str(error), "set what is missing, or HADES_EMBEDDER=minilm")
    return Check("embedder", "ok", settings.embedder)


def _model(settings: Settings) -> str | None:
    """The tag of the embedder's vectors; none where it cannot be opened, which another line tells."""
    try:
        return open_embedder(settings).model.tag
    except HadesError:
        return None


def _check_cache(settings: Settings, document: dict[str, Any]) -> Check:
    """What the tiers on disk hold; a folder that is not there is left so."""
    place, held = CachePlace.under(settings.home, settings.cache), []
    for name, folder, limit in (
        ("nvme", place.nvme, settings.cache.nvme_cache_size_gb),
        ("reliable", place.reliable, settings.cache.reliable_store_size_gb),
    ):
        entries = bytes_held = 0
        if folder.is_dir():
            tier = DiskCache(folder, limit)
            entries, bytes_held = len(tier), tier.current_bytes
            tier.close()
        document.setdefault("cache", {})[name] = {"path": str(folder), "entries": entries, "bytes": bytes_held}
        held.append(f"{name} {entries:,} answers, {bytes_held / 1024**2:.1f} MiB of {limit:g} GiB")
    return Check("cache", "ok", "; ".join(held))


def _view(checks: list[Check], document: dict[str, Any]) -> tuple[Table | Text, ...]:
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        found = Text(check.found)
        if check.next:
            found.append(f"\n-> {check.next}", style="bold")
        table.add_row(Text(check.status, style=_COLOURS[check.status]), check.name, found)
    parts: list[Table | Text] = [table]
    for title in ("versions", "store", "settings"):
        if title in document:
            lines = [f"  {name} = {_show(value)}" for name, value in document[title].items()]
            parts.append(Text("\n".join([f"\n{title}", *lines])))
    return tuple(parts)


def _show(value: object) -> str:
    return "(not set)" if value is None else json.dumps(value) if isinstance(value, dict) else str(value)
