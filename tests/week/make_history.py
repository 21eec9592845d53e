"""Write the history of the week: the pages of seven releases, in one archive.

    python tests/week/make_history.py FOLDER-WITH-SDISTS

The sdists are those of `pip download --no-deps --no-binary :all: flask==RELEASE`. The archive has
one folder for each release; pages of the same name stand side by side, so that what releases
share is stored once.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from pathlib import Path, PurePosixPath

RELEASES = ("2.0.3", "2.1.3", "2.2.5", "2.3.3", "3.0.3", "3.1.0", "3.1.3")
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "week"
HISTORY = FIXTURES / "flask-docs.tar.xz"


def main(sdists: Path) -> None:
    pages: dict[tuple[str, str], bytes] = {}
    for release in RELEASES:
        sdist = find_sdist(sdists, release)
        for name, content in read_pages(sdist).items():
            pages[name, release] = content
        (FIXTURES / "LICENSE.txt").write_bytes(read_license(sdist))
    HISTORY.write_bytes(lzma.compress(pack(pages), preset=9 | lzma.PRESET_EXTREME))


def find_sdist(folder: Path, release: str) -> Path:
    """The sdist of a release; older ones have a capital letter."""
    for name in (f"flask-{release}.tar.gz", f"Flask-{release}.tar.gz"):
        if (folder / name).is_file():
            return folder / name
    raise SystemExit(f"no sdist of Flask {release} in {folder}")


def read_pages(sdist: Path) -> dict[str, bytes]:
    """The reStructuredText below `docs/`, by its path there."""
    pages = {}
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            path = PurePosixPath(member.name)
            if path.suffix == ".rst" and path.parts[1] == "docs":
                pages["/".join(path.parts[2:])] = archive.extractfile(member).read()
    return pages


def read_license(sdist: Path) -> bytes:
    """The licence at the top of the release."""
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            path = PurePosixPath(member.name)
            if len(path.parts) == 2 and path.stem == "LICENSE":
                return archive.extractfile(member).read()
    raise SystemExit(f"{sdist} has no licence")


def pack(pages: dict[tuple[str, str], bytes]) -> bytes:
    """A tar archive with nothing in it but names and contents: the same pages, the same bytes."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for (name, release), content in sorted(pages.items()):
            member = tarfile.TarInfo(f"{release}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
