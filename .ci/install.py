"""Make .venv and install HADES into it, pinned, with a line of progress; `make` starts this with a
Python it found.

    python3.11 .ci/install.py base     what `make demo` needs: base, flows, serve
    python3.11 .ci/install.py dev      what tests and checks need as well

A second start goes on where the first one stopped; an environment that cannot run is made again.
Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

VENV = Path(".venv")
LOG = Path(".venv/install.log")
PARTS = {"base": [["-e", ".[flows,serve]"]], "dev": [["torch==2.13.0"], ["-e", ".[dev]"]]}
CAUSES = (  # what pip says, and what the reader can do
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError|Max retries "
        r"exceeded|No route to host",
        "the package index cannot be reached: check the network, or name another index with "
        "INDEX=https://host/simple",
    ),
    (
        r"No space left on device|Errno 28",
        "the disk is full: the demo needs 1.4 GB, the tests 4 GB",
    ),
    (
        r"command '?\S*(?:gcc|cc|clang|g\+\+)'? failed|Unable to find a "
        r"compatible|failed-wheel-build",
        "a package has no wheel for this machine and was not compiled: use Python 3.11, 3.12 or "
        "3.13 "
        "on Linux or macOS",
    ),
    (
        r"No matching distribution found for (\S+)",
        "the index has no fitting file: use Python 3.11, 3.12 or 3.13, or another index with "
        "INDEX=https://host/simple",
    ),
)


def works(python: Path) -> bool:
    """Whether the environment can start its Python and its pip."""
    done = (
        subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
        if python.exists()
        else None
    )
    return done is not None and done.returncode == 0


def pip(python: Path, arguments: list[str]) -> bool:
    """Install; one line of progress that is written over on a terminal, one every 20 seconds
    elsewhere.
    """
    index = os.environ.get("INDEX")
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
    ]
    command += ["--index-url", index] if index else []
    # Modules are compiled when they are first imported: most never are, and their bytecode takes a
    # fifth of the disk.
    command += ["--no-compile", *arguments, "-c", "constraints.txt"]
    began, shown, collected = time.monotonic(), 0.0, 0
    with LOG.open("a", encoding="utf-8") as log:
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert running.stdout is not None
        for line in running.stdout:
            log.write(line)
            collected += line.startswith(("Collecting ", "Requirement already satisfied"))
            step = "unpacking" if line.startswith("Installing collected") else "found"
            seconds = time.monotonic() - began
            if seconds - shown > (0.5 if sys.stdout.isatty() else 20) or step == "unpacking":
                shown = seconds
                text = f"  {collected} packages {step}, {seconds:.0f} s"
                sys.stdout.write(f"\r{text}\x1b[K" if sys.stdout.isatty() else f"{text}\n")
                sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write("\r\x1b[K")
    return running.wait() == 0


def main() -> int:
    """Install one set; 1 with one sentence where that fails."""
    which = sys.argv[1]
    python = VENV / "bin" / "python"
    if not works(python):
        if VENV.exists():
            sys.stdout.write(f"{VENV} cannot start its Python; it is made again\n")
            shutil.rmtree(VENV)
        made = subprocess.run(
            [sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False
        )
        if made.returncode:
            sys.stderr.write(
                f"{sys.executable} cannot make an environment "
                f"({made.stdout.strip().splitlines()[:1]}): "
                "install its venv package (Debian: python3-venv) and run make "
                "again\n"
            )
            return 1
    sys.stdout.write(
        f"installing into {VENV} ({'minutes' if which == 'base' else 'about ten minutes'} the "
        "first time)\n"
    )
    sys.stdout.flush()
    LOG.unlink(missing_ok=True)
    for arguments in PARTS[which]:
        if not pip(python, arguments):
            text = LOG.read_text(encoding="utf-8")
            cause = next((says for sign, says in CAUSES if re.search(sign, text)), "pip failed")
            sys.stderr.write(
                f"not installed: {cause}; then run make again (what pip said: {LOG})\n"
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
