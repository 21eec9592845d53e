"""Files that come in over REST: taken, read and answered from; or refused with nothing left
behind.
"""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hades.ports.store import Mode
from hades.surfaces.access.limits import Door
from hades.surfaces.access.uploads import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES
from tests.integration.rest_site import Running, build_home, serving
from tests.patience import HANG_SECONDS

pytestmark = pytest.mark.integration
PAGE = b"# Weir\n\nThe weir at Lindau was built by Berta Roth in 1931.\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("uploads")
    (folder / "open").mkdir()
    with serving(build_home(folder), Door(Mode.READ_WRITE, folders=(folder / "open",))) as running:
        yield running


def left_behind(site: Running) -> list[Path]:
    home = site.settings.home
    return [
        path
        for name in ("uploads", "uploads.incoming")
        for path in (home / name).rglob("*")
        if path.is_file()
    ]


def said(refused: httpx.Response) -> str:
    """The whole sentence, which a problem has in parts."""
    return "; ".join(map(str, refused.json().values()))


def until_read(site: Running) -> dict[str, Any]:
    give_up = time.monotonic() + HANG_SECONDS
    while (told := site.client.get("/v1/uploads").json())["state"] == "reading":
        assert time.monotonic() < give_up, told
        time.sleep(0.1)
    return dict(told)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "send 1 to"),
        ({f"a{n}.md": 1 for n in range(MAX_FILES + 1)}, "501 files"),
        ({f"a{n}.md": 1 for n in range(1000)}, "1,000 files"),
        ({"a.md": 2 << 30}, "2,147,483,648 bytes"),
        ({f"a{n}.md": MAX_FILE_BYTES for n in range(MAX_BYTES // MAX_FILE_BYTES + 1)}, "together"),
        ({"../a.md": 1}, "no path below a folder"),
        ({"/etc/a.md": 1}, "no path below a folder"),
        ({"a//b.md": 1}, "no path below a folder"),
        ({".ssh/a.md": 1}, "leading dots"),
        ({"a\\..\\b.md": 1}, "characters"),
        ({"a\n.md": 1}, "characters"),
        ({"C:a.md": 1}, "characters"),
        ({"a.exe": 1}, ".exe files are not read"),
        ({"a.zip": 1}, "archives are not opened"),
        ({"a.doc": 1}, "save it as .docx"),
        ({"a.md": 1, "A.md": 1}, "same path"),
    ],
)
def test_what_cannot_be_taken_is_refused_before_a_byte_is_sent(
    site: Running, files: dict[str, int], says: str
) -> None:
    before = left_behind(site)
    refused = site.client.post("/v1/uploads", json={"files": files})
    assert refused.status_code == 400
    assert says in said(refused)
    assert left_behind(site) == before


def begin(site: Running, **files: int) -> str:
    return str(site.client.post("/v1/uploads", json={"files": files}).json()["upload"])


def test_content_that_was_not_announced_ends_the_upload(site: Running) -> None:
    before = left_behind(site)
    upload = begin(site, **{"a.md": 3, "b.md": 3})
    assert site.client.put(f"/v1/uploads/{upload}/files/a.md", content=b"one").status_code == 204
    assert site.client.put(f"/v1/uploads/{upload}/files/b.md", content=b"longer").status_code == 400
    assert left_behind(site) == before
    assert site.client.post(f"/v1/uploads/{upload}/finish").status_code == 404
    upload = begin(site, **{"a.md": 3})
    assert site.client.put(
        f"/v1/uploads/{upload}/files/%2e%2e/%2e%2e/x.md", content=b"one"
    ).status_code in (400, 404)
    unsent = site.client.post(f"/v1/uploads/{begin(site, **{'c.md': 3})}/finish")
    assert "announced and not sent" in said(unsent)
    sent = site.client.put("/v1/uploads/x/files/a.md", content=b"0" * (MAX_FILE_BYTES + 1))
    assert sent.status_code == 413


def test_an_archive_that_unpacks_to_too_much_is_refused(site: Running) -> None:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w") as part,
    ):
        for _ in range(520):
            part.write(bytes(1 << 20))
    before, content = left_behind(site), packed.getvalue()
    for body, says in (
        (content, "unpacks to 545259520 bytes"),
        (b"PK" + bytes(100), "not the zip container"),
    ):
        upload = begin(site, **{"bomb.docx": len(body)})
        refused = site.client.put(f"/v1/uploads/{upload}/files/bomb.docx", content=body)
        assert says in said(refused)
    assert left_behind(site) == before


def test_uploaded_pages_and_an_allowed_folder_are_answered_from(
    site: Running, tmp_path: Path
) -> None:
    upload = begin(site, **{"manual/weir.md": len(PAGE)})
    assert (
        site.client.put(f"/v1/uploads/{upload}/files/manual/weir.md", content=PAGE).status_code
        == 204
    )
    assert site.client.post(f"/v1/uploads/{upload}/finish").json() == {"files": 1}
    told = until_read(site)
    assert told["state"] == "ready", told
    answer = site.client.post("/v1/answer", json={"query": "Who built the weir at Lindau?"}).json()
    assert "Berta Roth" in answer["text"]
    assert not (site.settings.home / "uploads.incoming" / upload).exists()
    (allowed,) = told["folders"]
    (Path(allowed) / "lock.md").write_text(
        "# Lock\n\nThe lock at Konstanz was drawn by Emil Hass.\n"
    )
    assert site.client.post("/v1/uploads/folder", json={"path": allowed}).status_code == 202
    assert until_read(site)["state"] == "ready"
    answer = site.client.post("/v1/answer", json={"query": "Who drew the lock at Konstanz?"}).json()
    assert "Emil Hass" in answer["text"]
    for outside in (str(tmp_path), f"{allowed}/../..", "/etc"):
        refused = site.client.post("/v1/uploads/folder", json={"path": outside})
        assert "may not be read" in said(refused)


def test_a_service_that_only_reads_takes_nothing(site: Running) -> None:
    with serving(site.settings) as reading:
        assert reading.client.post("/v1/uploads", json={"files": {"a.md": 1}}).status_code in (
            404,
            405,
        )


@pytest.mark.parametrize("path", ["/x\0", "x" * 4_000, "a" * 300])
def test_a_text_that_is_no_path_is_refused_with_a_sentence(site: Running, path: str) -> None:
    refused = site.client.post("/v1/uploads/folder", json={"path": path})
    assert 400 <= refused.status_code < 500
    assert "not a path" in said(refused) or "may not be read" in said(refused)


@pytest.mark.parametrize("upload", ["x" * 5_000, "a%00b", "0" * 32])
def test_an_upload_that_was_not_begun_is_unknown_whatever_its_id(
    site: Running, upload: str
) -> None:
    assert site.client.post(f"/v1/uploads/{upload}/finish").status_code == 404
