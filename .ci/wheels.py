"""Every pinned package has a wheel for every platform and Python that HADES supports; wheels.lock
says which.

    .venv/bin/python .ci/wheels.py            check the pins against the lock, offline
    .venv/bin/python .ci/wheels.py --write    ask the index for the wheels, and write the lock

A pin that fits nowhere is found when the lock is written; a pin that changed since is found by the
check.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "constraints.txt"
LOCK = ROOT / "wheels.lock"
PYTHONS = ("3.11", "3.12", "3.13")
MACOS = [f"macosx_{major}_0_{cpu}" for major in (14, 13, 12, 11) for cpu in ("arm64", "universal2")]
X86_64 = ("_2_28", "_2_27", "_2_24", "_2_17", "2014", "_2_12", "2010", "_2_5", "1")
PLATFORMS = {  # what a wheel's name may end with there, sys_platform, platform_machine
    "Linux x86-64": ([f"manylinux{tag}_x86_64" for tag in X86_64], "linux", "x86_64"),
    "Linux arm64": ([f"manylinux{tag}_aarch64" for tag in X86_64[:5]], "linux", "aarch64"),
    "macOS arm64": (
        [*MACOS, *(f"macosx_10_{minor}_universal2" for minor in range(16, 8, -1))],
        "darwin",
        "arm64",
    ),
}
PLACES = [(platform, python) for platform in PLATFORMS for python in PYTHONS]
Wheels = dict[str, list[str]]


def pins() -> list[Requirement]:
    """The lines of constraints.txt."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def is_wanted(pin: Requirement, place: tuple[str, str]) -> bool:
    """Whether the pin's marker holds on this platform and Python."""
    _, system, machine = PLATFORMS[place[0]]
    given = {
        "python_version": place[1],
        "python_full_version": f"{place[1]}.9",
        "sys_platform": system,
    }
    given |= {
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[system],
    }
    return pin.marker is None or pin.marker.evaluate(given)


def accepted(place: tuple[str, str]) -> set[Tag]:
    """The tags that pip accepts on this platform and Python."""
    version = (int(place[1].split(".")[0]), int(place[1].split(".")[1]))
    platforms = PLATFORMS[place[0]][0]
    named = f"cp{version[0]}{version[1]}"
    return {
        *cpython_tags(version, platforms=platforms),
        *compatible_tags(version, named, platforms),
    }


ACCEPTED = {place: accepted(place) for place in PLACES}


def fits(file: str, place: tuple[str, str]) -> bool:
    """Whether a wheel of this name can be installed there."""
    try:
        return not ACCEPTED[place].isdisjoint(parse_wheel_filename(file)[3])
    except InvalidWheelFilename:
        return False


def missing(wheels: Wheels) -> list[str]:
    """A sentence for every pin and place without a wheel."""
    found = []
    for pin in pins():
        files = wheels.get(f"{canonicalize_name(pin.name)}{pin.specifier}")
        if files is None:
            found.append(
                f"{pin.name}{pin.specifier} is not in {LOCK.name}: run {Path(__file__).name} "
                "--write"
            )
            continue
        bare = [
            place
            for place in PLACES
            if is_wanted(pin, place) and not any(fits(file, place) for file in files)
        ]
        if bare:
            places = "; ".join(f"{platform}, Python {python}" for platform, python in bare)
            found.append(f"{pin.name}{pin.specifier} has no wheel for {places}")
    return found


def read_lock() -> Wheels:
    """What the lock records: the wheels of each pin."""
    rows = (
        line.split()
        for line in LOCK.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    return {row[0]: row[1:] for row in rows if row}


def index_address() -> str:
    """The index that pip asks."""
    from pip._internal.models.index import PyPI  # its address stands nowhere in this repository

    return os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")


class Listing(HTMLParser):
    """The wheels on an index's page of a project, with the Pythons each is for."""

    def __init__(self) -> None:
        super().__init__()
        self.wheels: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A link is a file."""
        about = dict(attrs)
        file = unquote((about.get("href") or "").partition("#")[0].rpartition("/")[2])
        if tag == "a" and file.endswith(".whl") and "data-yanked" not in about:
            self.wheels[file] = about.get("data-requires-python") or ""


def offered(pin: Requirement) -> tuple[str, list[str]]:
    """The wheels of a pin, as few as serve all places."""
    name = canonicalize_name(pin.name)
    listing = Listing()
    with urllib.request.urlopen(f"{index_address()}/{name}/", timeout=60) as reply:
        listing.feed(reply.read().decode())
    usable = {}
    for file, pythons in listing.wheels.items():
        with suppress(InvalidWheelFilename):
            if parse_wheel_filename(file)[1] in pin.specifier:
                usable[file] = SpecifierSet(pythons)
    needed: list[str] = []
    for place in PLACES:
        able = [
            file
            for file, pythons in usable.items()
            if fits(file, place) and f"{place[1]}.9" in pythons
        ]
        if is_wanted(pin, place) and able and not any(file in able for file in needed):
            needed.append(min(able, key=lambda file: (not file.endswith("none-any.whl"), file)))
    return f"{name}{pin.specifier}", sorted(needed)


def main() -> int:
    """Check, or write and check; 1 where a wheel is missing."""
    if "--write" in sys.argv:
        try:
            with ThreadPoolExecutor(8) as pool:
                wheels = dict(pool.map(offered, pins()))
        except urllib.error.URLError as error:
            sys.stderr.write(
                f"wheels: the package index cannot be reached ({error.reason}); {LOCK.name} is "
                "unchanged\n"
            )
            return 1
        head = (
            "# The wheels of each pin for Linux (x86-64, arm64) and macOS (arm64), Python 3.11 "
            "to 3.13: .ci/wheels.py\n"
        )
        rows = "".join(f"{' '.join([name, *files])}\n" for name, files in sorted(wheels.items()))
        LOCK.write_text(head + rows, encoding="utf-8")
    problems = missing(read_lock())
    for problem in problems:
        sys.stderr.write(f"wheels: {problem}\n")
    if not problems:
        sys.stdout.write(
            f"wheels: {len(pins())} pins have one for {len(PLACES)} platforms and Pythons\n"
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
