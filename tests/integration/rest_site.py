"""A small published graph and a service in front of it, for tests that talk HTTP."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door, Limits, tcp_socket, unix_socket
from hades.surfaces.rest.app import server
from hades.surfaces.rest.services import Services
from hades.wiring import open_hades
from tests.homes import settings_of
from tests.patience import HANG_SECONDS

RIVERS = {
    "Rhine": "Basel, Strasbourg, Mannheim and Rotterdam",
    "Danube": "Ulm, Vienna, Budapest and Belgrade",
    "Elbe": "Dresden, Magdeburg and Hamburg",
    "Rhone": "Geneva, Lyon and Avignon",
    "Main": "Bayreuth, Frankfurt and Mainz",
}
ROOT = Path(__file__).parents[2]
UNLIMITED = Limits(per_second=0, arrive_seconds=HANG_SECONDS, request_seconds=HANG_SECONDS)


def write_pages(folder: Path, rivers: dict[str, str], note: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for river, towns in rivers.items():
        text = (
            f"# {river}\n\nThe {river} river flows through {towns}. {note}\n\nThe {river} "
            "carries ships to the sea.\n"
        )
        (folder / f"{river.lower()}.md").write_text(text, encoding="utf-8")


def build_home(folder: Path) -> Settings:
    """Five pages, ingested and published."""
    settings = settings_of(folder / "home")
    write_pages(folder / "pages", RIVERS)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        hades.publish()
    return settings


@dataclass
class Running:
    """A service that answers, and how to reach it."""

    client: httpx.Client
    settings: Settings
    address: str
    services: Services


@contextmanager
def serving(
    settings: Settings,
    door: Door | None = None,
    limits: Limits = UNLIMITED,
    uds: Path | None = None,
) -> Iterator[Running]:
    """A service in a thread of this process, on a Unix socket or on a free port of loopback."""
    door = door or Door(Mode.READ_ONLY)
    listening = unix_socket(uds, door.mode) if uds else tcp_socket("127.0.0.1", 0)
    address = "http://localhost" if uds else f"http://127.0.0.1:{listening.getsockname()[1]}"
    running = server(settings, door, limits)
    thread = threading.Thread(target=lambda: running.run(sockets=[listening]), daemon=True)
    thread.start()
    transport = httpx.HTTPTransport(uds=str(uds)) if uds else None
    try:
        with httpx.Client(base_url=address, transport=transport, timeout=HANG_SECONDS) as client:
            while not running.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield Running(client, settings, address, running.config.app.state.services)
    finally:
        running.should_exit = True
        thread.join(HANG_SECONDS)
        listening.close()


@contextmanager
def serving_process(
    settings: Settings, *arguments: str, programs: Path | None = None, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`hades serve` in a process of its own, as people run it; the process and its address.

    What it says on stderr is in `service.log` beside the home. With the folder of the fixture
    `programs`, the process is the program that stands for a copy of the warm process. `variables`
    are more of its environment.
    """
    env = {
        **os.environ,
        "HADES_HOME": str(settings.home),
        "HADES_EMBEDDER": "hashing",
        "HADES_SERVE_RATE": "0",
    }
    env |= variables
    hades = (
        [sys.executable, "-m", "hades.surfaces.cli.commands"]
        if programs is None
        else [str(programs / "hades")]
    )
    command = [*hades, "serve", *arguments]
    said = settings.home.parent / "service.log"
    with said.open("w") as log:
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=log, text=True, cwd=ROOT
        )
    try:
        while not (found := re.search(r" on (\S+);", said.read_text())):
            assert process.poll() is None, said.read_text()
            time.sleep(0.05)
        address = found[1]
        transport = None if address.startswith("http") else httpx.HTTPTransport(uds=address)
        with httpx.Client(
            base_url=address if transport is None else "http://localhost", transport=transport
        ) as client:
            assert client.get("/health", timeout=HANG_SECONDS).status_code == 200
        yield process, address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_SECONDS)
