"""A registry whose writes wait in files until something is read from it.

Where MLflow must be loaded, that takes four seconds of processor time, more than the rest of a night after a small
change, and most nights only write to it: a run, a version, its tags, the alias. These wait in order in a folder and are
delivered by the next process that reads the registry, or when `MOST_RUNS` runs wait. Version numbers are given out
ahead: they are known as long as nobody else has written to the registry's file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hades.ports.tracking import DATA_HASH, Tracker, Version
from hades.providers.registry_files import hold_lock

MOST_RUNS = 7
_KNOWN = "known.json"
_WAITING = "waiting-"  # begins the id of a run that is not delivered yet
Operation = dict[str, Any]


class DeferredTracker:
    """A `Tracker` over another one. `stamp` changes with every write to the file of the inner registry."""

    def __init__(self, inner: Tracker, folder: Path, stamp: Callable[[], list[int]]) -> None:
        self._inner, self._folder, self._stamp = inner, folder, stamp
        self._is_open = False

    def log_run(
        self,
        experiment: str,
        name: str,
        *,
        params: Mapping[str, object],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        tags: Mapping[str, str],
    ) -> str:
        """See `Tracker.log_run`."""
        told: Operation = {"experiment": experiment, "name": name, "metrics": dict(metrics), "tags": dict(tags)}
        told["params"] = {key: str(value) for key, value in params.items()}
        if not self._may_wait() or self._is_full():
            return self._open().log_run(**{**told, "artifacts": artifacts})
        for number, one in self._waiting():
            if one["do"] == "log_run" and one["experiment"] == experiment and _hash(one) == tags.get(DATA_HASH):
                return f"{_WAITING}{number}"
        number = self._append({"do": "log_run", **told, "artifacts": [path.name for path in artifacts]}, artifacts)
        return f"{_WAITING}{number}"

    def register(self, name: str, run: str, artifact: str) -> str:
        """See `Tracker.register`. Of a run that waits, the number that the registry is going to give."""
        if self._is_open or not run.startswith(_WAITING):
            version = self._open().register(name, run, artifact)
            self._note(name)
            return version
        data_hash = _hash(dict(self._waiting())[run.removeprefix(_WAITING)])
        known = self.version_of(name, data_hash)
        if known is not None:
            return known
        version = str(self._last(name) + 1)
        told = {"name": name, "run": run, "artifact": artifact, "version": version, "data_hash": data_hash}
        self._append({"do": "register", **told})
        return version

    def version_of(self, name: str, data_hash: str) -> str | None:
        """See `Tracker.version_of`."""
        if not self._may_wait():
            return self._open().version_of(name, data_hash)
        for _, one in self._waiting():
            if one["do"] == "register" and one["name"] == name and one["data_hash"] == data_hash:
                return str(one["version"])
        known: str | None = self._known()["models"].get(name, {}).get("hashes", {}).get(data_hash)
        return known

    def tag(self, name: str, version: str, tags: Mapping[str, str]) -> None:
        """See `Tracker.tag`."""
        if self._may_wait() and self._is_known(name, version):
            self._append({"do": "tag", "name": name, "version": version, "tags": dict(tags)})
            return
        self._open().tag(name, version, tags)
        self._note(name)

    def set_alias(self, name: str, alias: str, version: str) -> None:
        """See `Tracker.set_alias`."""
        if self._may_wait() and self._is_known(name, version):
            self._append({"do": "set_alias", "name": name, "alias": alias, "version": version})
            return
        self._open().set_alias(name, alias, version)
        self._note(name)

    def keep_newest(self, name: str, keep: int, needed: Sequence[str]) -> list[str]:
        """See `Tracker.keep_newest`. What waits to be removed is not named."""
        if self._may_wait():
            self._append({"do": "keep_newest", "name": name, "keep": keep, "needed": list(needed)})
            return []
        gone = self._open().keep_newest(name, keep, needed)
        self._note(name)
        return gone

    def versions(self, name: str) -> list[Version]:
        """See `Tracker.versions`."""
        return self._open().versions(name)

    def alias(self, name: str, alias: str) -> str | None:
        """See `Tracker.alias`."""
        return self._open().alias(name, alias)

    def fetch(self, name: str, version: str) -> Path:
        """See `Tracker.fetch`."""
        return self._open().fetch(name, version)

    def delete_version(self, name: str, version: str) -> None:
        """See `Tracker.delete_version`."""
        self._open().delete_version(name, version)
        self._note(name)

    def deliver(self) -> int:
        """Write everything that waits to the registry, in order; how many operations. Repeating it changes nothing."""
        with hold_lock(self._folder / ".lock"):
            waiting = self._waiting()
            runs: dict[str, str] = {}
            numbers: dict[tuple[str, str], str] = {}
            for number, one in waiting:
                self._apply(number, one, runs, numbers)
            for name in sorted({one["name"] for _, one in waiting if one["do"] != "log_run"}):
                self._note(name)
            for number, _ in waiting:
                (self._folder / f"{number}.json").unlink()
                shutil.rmtree(self._folder / number, ignore_errors=True)
        return len(waiting)

    def _apply(self, number: str, one: Operation, runs: dict[str, str], numbers: dict[tuple[str, str], str]) -> None:
        """One operation; `numbers` are those the registry gave where it gave others than were expected."""
        told = {key: value for key, value in one.items() if key not in ("do", "data_hash")}
        if one["do"] == "log_run":
            told["artifacts"] = [self._folder / number / name for name in one["artifacts"]]
            runs[f"{_WAITING}{number}"] = self._inner.log_run(**told)
        elif one["do"] == "register":
            made = self._inner.register(one["name"], runs[one["run"]], one["artifact"])
            numbers[one["name"], one["version"]] = made
        else:
            if "version" in told:
                told["version"] = numbers.get((one["name"], one["version"]), one["version"])
            getattr(self._inner, one["do"])(**told)

    def _open(self) -> Tracker:
        """The inner registry, after everything that waits was written to it."""
        if not self._is_open:
            self.deliver()
            self._is_open = True
        return self._inner

    def _may_wait(self) -> bool:
        """Whether a write can wait: nothing was read yet, and the state of the registry is known."""
        return not self._is_open and bool(self._known()["stamp"] == self._stamp())

    def _is_full(self) -> bool:
        return len([number for number, one in self._waiting() if one["do"] == "log_run"]) >= MOST_RUNS

    def _is_known(self, name: str, version: str) -> bool:
        return version.isdigit() and int(version) <= self._last(name)

    def _last(self, name: str) -> int:
        """The last version number that was given out or promised."""
        promised = [
            int(one["version"]) for _, one in self._waiting() if one["do"] == "register" and one["name"] == name
        ]
        return max([int(self._known()["models"].get(name, {}).get("last", 0)), *promised])

    def _note(self, name: str) -> None:
        """Remember the versions of a name, so that the next process need not load the registry to know them."""
        found, known = self._inner.versions(name), self._known()
        last = max([int(known["models"].get(name, {}).get("last", 0)), *(int(one.version) for one in found)])
        hashes = {one.tags.get(DATA_HASH, ""): one.version for one in reversed(found)}
        known["models"][name] = {"last": last, "hashes": hashes}
        self._write(_KNOWN, {**known, "stamp": self._stamp()})

    def _known(self) -> Operation:
        try:
            known: Operation = json.loads((self._folder / _KNOWN).read_text())
        except (OSError, ValueError):  # nothing noted yet: the registry is opened and says
            return {"stamp": None, "models": {}}
        return known

    def _waiting(self) -> list[tuple[str, Operation]]:
        return [(path.stem, json.loads(path.read_text())) for path in self._files()]

    def _files(self) -> list[Path]:
        """What waits, in order."""
        return sorted(self._folder.glob("[0-9]*.json"))

    def _append(self, operation: Operation, artifacts: Sequence[Path] = ()) -> str:
        """Keep an operation, its files before the line that names them; its number."""
        with hold_lock(self._folder / ".lock"):
            taken = [int(path.stem) for path in self._files()]
            number = f"{max(taken, default=0) + 1:06d}"
            if artifacts:
                (self._folder / number).mkdir(parents=True, exist_ok=True)
                for path in artifacts:
                    shutil.copyfile(path, self._folder / number / path.name)
            self._write(f"{number}.json", operation)
        return number

    def _write(self, name: str, contents: Operation) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f"{name}.partial"
        partial.write_text(json.dumps(contents))
        partial.replace(self._folder / name)


def _hash(operation: Operation) -> str:
    return str(operation["tags"].get(DATA_HASH, ""))
