"""A bucket of a real S3 server on the loopback: changes, deletes and a refused account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hades.ingest.sources.remote_site import Syncing, syncing

pytest.importorskip("s3fs")
server = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import fsspec

    s3 = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    s3.start()
    host, port = s3.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-the-bucket")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    if fs.exists("desk"):  # of the test before: the server keeps its buckets in this process
        fs.rm("desk", recursive=True)
    fs.mkdir("desk")
    fs.pipe({f"desk/notes/n{number:03}.md": b"# N\n\n%d" % number for number in range(60)})
    yield fs
    s3.stop()


@pytest.fixture
def home(bucket: Any, tmp_path: Path) -> Syncing:
    return syncing(tmp_path / "home", "s3://desk/notes")


def test_only_changed_objects_are_read_and_deleted_ones_go(bucket: Any, home: Syncing) -> None:
    first = home.sync()
    assert (first.problem, first.new) == ("", 60)
    bucket.pipe("desk/notes/n001.md", b"# N\n\nchanged")
    bucket.rm("desk/notes/n002.md")
    report = home.sync()
    assert (report.read, report.changed, report.removed, report.unchanged) == (1, 1, 1, 58)
    copies = home.remotes.ledger("there").copies()
    assert copies["desk/notes/n001.md"].address == "s3://desk/notes/n001.md"


def test_a_bucket_that_is_gone_keeps_its_copies_and_its_secret(bucket: Any, home: Syncing) -> None:
    assert home.sync().problem == ""
    bucket.rm("desk", recursive=True)
    problem = home.sync().problem
    assert "nothing was changed" in problem
    assert "a-secret-of-the-bucket" not in problem
    assert len(home.copies) == 60
