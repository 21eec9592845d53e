"""Check that every pinned package has a wheel for every platform and Python that HADES supports.

    .venv/bin/python .ci/check_wheels.py [constraints.txt]

Nothing is installed: pip resolves the pins with `--dry-run --only-binary :all:`. Packages whose wheel runs anywhere
are resolved once; the others once for each platform and Python. Without an index the check says so and ends with 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {  # name: pip's platform tags, sys_platform, platform_machine
    "Linux x86-64": ([f"manylinux{tag}_x86_64" for tag in ("_2_28", "_2_17", "2014")], "linux", "x86_64"),
    "Linux arm64": ([f"manylinux{tag}_aarch64" for tag in ("_2_28", "_2_17", "2014")], "linux", "aarch64"),
    "macOS arm64": ([f"macosx_{major}_0_{cpu}" for major in (14, 13, 12, 11) for cpu in ("arm64", "universal2")]
                    + ["macosx_10_9_universal2"], "darwin", "arm64"),
}  # fmt: skip
UNREACHABLE = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ProxyError", "ConnectionError")


def pins_for(lines: list[str], python: str, system: str, machine: str) -> list[str]:
    """The pins whose markers hold there; pip itself would ask the markers about this machine."""
    place = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[system],
    }
    wanted = [Requirement(line) for line in lines]
    return [f"{one.name}{one.specifier}" for one in wanted if one.marker is None or one.marker.evaluate(place)]


def resolve(pins: list[str], python: str, tags: list[str]) -> tuple[dict[str, str], str]:
    """File name of the wheel of each pin, and pip's error; a missing wheel makes it an error."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "pins.txt"
        requirements.write_text("\n".join(pins) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet", "--report", "-"]
        command += ["--target", folder, "--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
        command += [word for tag in tags for word in ("--platform", tag)] + ["-r", str(requirements)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {}, done.stderr
    found = json.loads(done.stdout)["install"]
    return {one["metadata"]["name"]: one["download_info"]["url"].rpartition("/")[2] for one in found}, ""


def main() -> int:
    """Check every platform and Python; 1 where a wheel is missing."""
    pins = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")
    lines = [line for line in pins.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    first_tags, system, machine = PLATFORMS["Linux x86-64"]
    wheels, error = resolve(pins_for(lines, PYTHONS[0], system, machine), PYTHONS[0], first_tags)
    if any(sign in error for sign in UNREACHABLE):
        sys.stdout.write("wheels: not checked, the package index cannot be reached\n")
        return 0
    anywhere = {name.lower() for name, file in wheels.items() if file.endswith("none-any.whl")}

    def check(place: tuple[str, str]) -> str:
        tags, system, machine = PLATFORMS[place[0]]
        own = [pin for pin in pins_for(lines, place[1], system, machine) if pin.split("=")[0].lower() not in anywhere]
        return resolve(own, place[1], tags)[1]

    places = [(platform, python) for platform in PLATFORMS for python in PYTHONS]
    with ThreadPoolExecutor(2) as pool:
        errors = [error, *pool.map(check, places)]
    problems = [f"{platform}, Python {python}: {text}" for (platform, python), text in
                zip([("Linux x86-64", PYTHONS[0]), *places], errors, strict=True) if text]  # fmt: skip
    for problem in problems:
        last = [line for line in problem.splitlines() if "ERROR" in line][-1:] or problem.splitlines()[-1:]
        sys.stdout.write(f"wheels: {problem.splitlines()[0].partition(':')[0]}: {' '.join(last)}\n")
    if not problems:
        sys.stdout.write(f"wheels: {len(lines)} pins have wheels on {len(places)} platforms and Pythons\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
