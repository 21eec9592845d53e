"""Sixty-four clients at once while graphs are published: no error, no answer of two graphs, no way
back.
"""

import subprocess
import threading
import time
from urllib.parse import urlsplit

import psutil
import pytest

from benchmarks.serve_clients import ask_at_once
from hades.snapshot.pointer import served
from hades.wiring import open_hades
from tests.homes import settings_of
from tests.integration.rest_site import RIVERS, build_home, serving_process, write_pages
from tests.patience import HANG_SECONDS

QUESTIONS = [
    f"what is said of the {river} and {town}?"
    for river in RIVERS
    for town in ("Basel", "Vienna", "ships")
]


def publish_edition(folder, settings, edition, editions):
    """Change every page and publish; the word of the edition is known before anybody can read
    it.
    """
    write_pages(folder / "pages", RIVERS, f"This is edition{edition}.")
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "pages")
        before = served(settings.home)
        published = hades.publish()
    assert published.snapshot != before
    editions[published.snapshot] = f"edition{edition}"


def under_load(tmp_path, seconds, editions_published, programs=None):
    """Publish while clients ask. They begin before the first and go on until the newest edition has
    answered.
    """
    settings = build_home(tmp_path)
    editions: dict[str, str] = {}
    publish_edition(tmp_path, settings, 1, editions)
    asked, give_up = threading.Event(), time.monotonic() + seconds + HANG_SECONDS

    def publish_all():
        asked.wait(HANG_SECONDS)
        for edition in range(2, 2 + editions_published):
            time.sleep(seconds / (editions_published + 1))
            publish_edition(tmp_path, settings, edition, editions)

    def is_enough(seen):
        if seen.answers:
            asked.set()
        served_last = {snapshot for _, _, snapshot, _ in seen.answers[-64:]}
        return time.monotonic() > give_up or (
            not publishing.is_alive() and list(editions)[-1] in served_last
        )

    rss, publishing = [], threading.Thread(target=publish_all)
    with serving_process(settings, "--port", "0", "--no-token", programs=programs) as (
        process,
        address,
    ):
        publishing.start()
        watching = threading.Timer(
            seconds / 3, lambda: rss.append(psutil.Process(process.pid).memory_info().rss)
        )
        watching.start()
        where = urlsplit(address)
        options = {"clients": 64, "seconds": seconds, "recipe": "pathrag", "editions": editions}
        seen = ask_at_once((where.hostname, where.port), QUESTIONS, **options, is_enough=is_enough)
        publishing.join()
        watching.join()
        rss.append(psutil.Process(process.pid).memory_info().rss)
    return seen, editions, rss


def check(seen, editions):
    assert set(seen.statuses) == {200}
    assert seen.mixed == []
    assert seen.went_back == 0
    assert {snapshot for _, _, snapshot, _ in seen.answers} == set(editions)
    assert len(seen.answers) > 64


@pytest.mark.slow
def test_a_publish_in_the_middle_is_one_clean_cut(tmp_path, programs):
    seen, editions, _ = under_load(tmp_path, 3, 1, programs)
    check(seen, editions)
    assert len(editions) == 2


@pytest.mark.soak
def test_two_minutes_with_publishes_in_the_middle(tmp_path):
    seen, editions, rss = under_load(tmp_path, 120, 5)
    check(seen, editions)
    assert rss[1] < rss[0] * 1.1 + 32 * 1024 * 1024


def test_a_service_that_is_stopped_finishes_and_removes_its_socket(tmp_path, programs):
    settings = build_home(tmp_path)
    path = tmp_path / "hades.sock"
    with serving_process(settings, "--uds", str(path), programs=programs) as (process, address):
        assert address == str(path)
    assert process.returncode == 0
    assert not path.exists()


def test_the_command_refuses_what_it_cannot_serve(tmp_path, programs):
    settings = settings_of(tmp_path)

    def said(*arguments):
        command = [programs / "hades", "serve", *arguments]
        env = {"HADES_HOME": str(settings.home)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        return done.returncode, done.stderr

    code, text = said("--port", "0", "--host", "0.0.0.0", "--no-token")
    assert (code, "callers need tokens" in text) == (1, True)
    assert said("--mode", "all")[0] == 2
    assert said("--uds", str(tmp_path / "s"), "--port", "1")[0] == 2
    code, text = said("--uds", str(tmp_path / "no" / "s"))
    assert (code, "make its folder" in text) == (1, True)
