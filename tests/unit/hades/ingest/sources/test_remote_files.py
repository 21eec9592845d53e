"""Files of a bucket or folder are copied by their versions, and the copies are as safe as files of
a folder.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import fsspec
import pytest

from hades.errors import SettingsError
from hades.ingest.sources.remote.remotes import check_options, default_name, kind_of
from hades.ingest.sources.remote.sync import PathNames
from schemas.sources import RemoteSource
from tests.unit.hades.ingest.sources.remote_site import Syncing, syncing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "bucket"
    root.mkdir()
    for name, text in (("a.md", "# A\n\nOne."), ("b.txt", "Two."), ("c/d.md", "# D\n\nThree.")):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def home(folder: Path, tmp_path: Path) -> Syncing:
    return syncing(tmp_path / "home", folder.as_uri())


def test_only_what_changed_is_read_again(folder: Path, home: Syncing) -> None:
    first = home.sync()
    assert (first.new, first.read) == (3, 3)
    (folder / "a.md").write_text("# A\n\nOne and a half.")
    os.utime(folder / "b.txt", ns=(1, 1))  # another time, the same content
    second = home.sync()
    assert second.read == 2
    assert (second.changed, second.unchanged) == (1, 2)
    assert home.sync().read == 0


def test_a_deleted_and_a_renamed_file_are_followed(folder: Path, home: Syncing) -> None:
    home.sync()
    (folder / "b.txt").unlink()
    (folder / "a.md").rename(folder / "z.md")
    report = home.sync()
    assert (report.new, report.removed) == (1, 2)
    assert set(home.copies) == {"z.md", "c/d.md"}


def test_a_copy_that_is_gone_from_the_mirror_is_read_again(home: Syncing) -> None:
    home.sync()
    (home.remotes.mirror("there") / "a.md").unlink()
    assert home.sync().read == 1
    assert "a.md" in home.copies


def test_a_sync_that_fails_goes_on_where_it_stopped(
    folder: Path, home: Syncing, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = fsspec.implementations.local.LocalFileSystem.cat_file

    def fail(self: object, path: str, *args: object, **options: object) -> bytes:
        if path.endswith("d.md"):
            raise OSError("the share went away")
        content: bytes = read(self, path, *args, **options)
        return content

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "cat_file", fail)
    assert "the share went away" in home.sync().problem
    assert home.copies == {}
    monkeypatch.undo()
    report = home.sync()
    assert (report.new, report.read) == (3, 1)
    assert len(home.copies) == 3


def test_a_folder_that_is_away_stops_the_sync(folder: Path, home: Syncing) -> None:
    home.sync()
    folder.rename(folder.with_name("elsewhere"))
    report = home.sync()
    assert "nothing was changed" in report.problem
    assert len(home.copies) == 3


def test_a_huge_file_is_named_and_not_read(folder: Path, home: Syncing) -> None:
    with (folder / "huge.md").open("wb") as file:
        file.truncate(9 << 20)
    report = home.sync()
    assert report.reasons == {"oversized": 1}
    assert report.bytes < 1_000


def test_patterns_and_formats_choose_the_files(folder: Path, tmp_path: Path) -> None:
    (folder / "logo.png").write_bytes(b"png")
    home = syncing(tmp_path / "other", folder.as_uri(), exclude=["c/"], include=["*.md"])
    report = home.sync()
    assert set(home.copies) == {"a.md"}
    assert report.left_out == 3


def test_links_out_of_the_folder_are_not_followed(folder: Path, home: Syncing) -> None:
    secret = folder.parent / "secret.md"
    secret.write_text("# Secret")
    (folder / "link.md").symlink_to(secret)
    (folder / "loop").symlink_to(folder)
    home.sync()
    assert set(home.copies) == {"a.md", "b.txt", "c/d.md"}


def test_a_zip_is_read_as_the_folder_that_it_holds(folder: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes/x.md", "# X\n\nPacked.")
    home = syncing(tmp_path / "zipped", f"zip::file://{packed}")
    assert home.sync().problem == ""
    assert set(home.copies) == {"notes/x.md"}


def test_a_bucket_may_hold_names_that_no_folder_can(tmp_path: Path) -> None:
    names = ["a", "a/b.md", "../up.md", ".git/c.md", "e\nf.md", "x" * 300 + ".md", "A?.md", "A*.md"]
    taken = PathNames([])
    paths = [taken.add(name, name) for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        target = tmp_path / "mirror" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")
        assert target.resolve().is_relative_to((tmp_path / "mirror").resolve())
        assert "/.git/" not in f"/{path}"


def test_an_address_says_its_kind_and_a_wrong_option_is_refused() -> None:
    addresses = {
        "s3://bucket/x": "files",
        "zip::s3://bucket/x.zip": "files",
        "listing+https://example.org/files/": "files",
        "https://example.org": "web",
        "postgresql+psycopg://db/x": "sql",
        "dlt:mine.wiki:pages": "dlt",
    }
    assert {address: kind_of(address).name for address in addresses} == addresses
    with pytest.raises(SettingsError, match="reads no table"):
        check_options(RemoteSource(url="s3://bucket", table="t"))
    with pytest.raises(SettingsError, match="no address"):
        kind_of("notes")
    assert default_name("https://docs.example.org/en/") == "docs-example-org-en"


def test_a_library_that_is_missing_is_named_with_the_extra(tmp_path: Path) -> None:
    home = syncing(tmp_path / "home", "sftp://example.org/notes")
    try:
        import paramiko  # noqa: F401
    except ImportError:
        assert "pip install 'hades-graphrag[fsspec]' paramiko" in home.sync().problem


def test_a_file_of_rights_that_no_sync_reads_stops_it(folder: Path, tmp_path: Path) -> None:
    (folder / ".hades-rights.yaml").write_text("c/: hr\n")
    home = syncing(tmp_path / "home", folder.as_uri())
    assert "--rights" in home.sync().problem
    assert not home.copies
    stated = syncing(tmp_path / "other", folder.as_uri(), rights={"c/": "hr, user:ann"})
    assert stated.sync().problem == ""
    assert stated.remotes.ledger("there").rights() == {"c/d.md": ("hr", "user:ann")}
