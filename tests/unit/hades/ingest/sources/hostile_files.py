"""Two hundred and more broken files: what a corpus must survive."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import random
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.unit.hades.ingest.sources.pdf_files import pdf_bomb, pdf_of_streams, pdf_with

MEGABYTE = 1_000_000
PROSE = "Ein schöner Tag, Größe und Überfluß; naïve café. " * 30
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 30
JAPANESE = "いろはにほへと ちりぬるを わかよたれそ つねならむ。" * 30


def write_hostile(root: Path) -> int:
    """Writes them all below `root`; how many there are."""
    count = 0
    for name, data in hostile_files():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        count += 1
    return count + write_special(root / "special") + write_odd_names(root / "names")


def hostile_files() -> Iterator[tuple[str, bytes]]:
    """Regular files with plain names."""
    yield from _encodings()
    yield from _nesting()
    yield from _long_lines()
    yield from _pdfs()
    yield from _binaries()
    yield from _texts()


def write_special(folder: Path) -> int:
    """Links that loop or lead nowhere, FIFOs, sockets, folders named like files, odd ignore
    files.
    """
    folder.mkdir()
    links = {
        "loop.py": "loop.py",
        "a.md": "b.md",
        "b.md": "a.md",
        "dangling.txt": "nowhere",
        "up": "..",
        "here.md": ".",
    }
    links |= {
        "outside.py": "/etc/hostname",
        "device.txt": "/dev/zero",
        "memory.html": "/proc/self/mem",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    for name in ("pipe.py", "pipe.md", "pipe.pdf", "pipe.html"):
        os.mkfifo(folder / name)
    (folder / "folder.md").mkdir()
    (folder / "ignored").mkdir()
    os.mkfifo(folder / "ignored/.gitignore")
    (folder / "stars").mkdir()
    (folder / "stars/.gitignore").write_text("*a" * 60 + "b\n" + "**/" * 60 + "x\n[\n!\n\\\n")
    (folder / "stars" / ("a" * 200 + ".py")).write_text("x = 1\n")
    (folder / "binary").mkdir()
    (folder / "binary/.gitignore").write_bytes(bytes(range(256)))
    here = os.getcwd()
    try:
        os.chdir(folder)  # the address of a socket must be short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket.txt")
    finally:
        os.chdir(here)
    return len(links) + 4 + 6


def write_odd_names(folder: Path) -> int:
    """Names with newlines, control characters, bytes that are no UTF-8, and the longest name there
    is.
    """
    folder.mkdir()
    names = [
        b"two\nlines.py",
        b"tab\t.md",
        b"bell\x07.txt",
        b"\xff\xfe.py",
        b"esc\x1b[31m.md",
        b"cr\r.html",
        b"\xed\xa0\x80.txt",
    ]
    names += [
        b"-rf.py",
        b" lead.md",
        b"trail .py ",
        "\u2028.md".encode(),
        "😀.py".encode(),
        b"%s%n.md",
        b"x" * 252 + b".py",
    ]
    for name in names:
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"x = 1  # " + os.fsencode(repr(name)))
    return len(names)


def _encodings() -> Iterator[tuple[str, bytes]]:
    variants = {
        "latin1": PROSE.encode("latin-1"),
        "cp1251": RUSSIAN.encode("cp1251"),
        "koi8": RUSSIAN.encode("koi8-r"),
        "sjis": JAPANESE.encode("shift_jis"),
        "eucjp": JAPANESE.encode("euc_jp"),
        "utf16": PROSE.encode("utf-16"),
        "utf16_bare": PROSE.encode("utf-16-le"),
        "utf16_odd": PROSE.encode("utf-16") + b"x",
        "utf16_lone": codecs.BOM_UTF16_LE + b"\x00\xd8" * 50,
        "utf32": PROSE.encode("utf-32"),
        "surrogates": b"caf\xed\xa0\x80 and \xed\xbf\xbf more",
        "overlong": b"\xc0\xaf\xe0\x80\xaf words",
        "bom_mix": codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + PROSE.encode("utf-16-le"),
        "bom_twice": codecs.BOM_UTF8 * 3 + b"# x = 1",
        "bom_only": codecs.BOM_UTF16_BE,
        "false_cookie": b"# -*- coding: zip -*-\nx = '\xff\xfe'\n",
        "cut": "naïve".encode()[:-3] * 40,
    }
    for name, data in variants.items():
        for suffix in (".py", ".md", ".html"):
            yield f"encodings/{name}{suffix}", data


def _nesting() -> Iterator[tuple[str, bytes]]:
    deep = 10_000
    patterns = {
        "open": b"[" * deep,
        "closed": b"(" * deep + b")" * deep,
        "braces": b"{\n" * deep,
        "chain": b"a" + b".b()" * deep,
        "minus": b"x = " + b"- " * deep + b"1",
    }
    for name, data in patterns.items():
        for suffix in (".py", ".js", ".ts", ".java", ".go", ".rs", ".c", ".cpp", ".rb"):
            yield f"nesting/{name}{suffix}", data
    yield "nesting/generics.java", b"a<" * 50_000
    yield "nesting/quotes.js", b"\"'`" * 10_000
    yield "nesting/fields.py", b"x = f'''" + b"{a}\n" * 30_000 + b"'''"
    yield "nesting/elif.py", b"if a:\n pass\n" + b"elif a:\n pass\n" * deep
    yield "nesting/indent.py", b"".join(b" " * level + b"if a:\n" for level in range(1000))
    yield "nesting/divs.html", b"<div>" * 20_000 + b"text" + b"</div>" * 20_000
    yield "nesting/comments.html", b"<!--" * 50_000
    yield "nesting/tags.html", b"<a b='" * 50_000
    yield "nesting/lists.md", b"\n".join(b" " * level + b"- x" for level in range(1000))
    yield "nesting/quotes.md", b">" * 50_000 + b" x"
    yield "nesting/links.md", b"# " + b"[" * 90_000
    yield "nesting/headings.md", b"# x\n" * 50_000
    yield "nesting/json.txt", b'{"a":' * deep


def _long_lines() -> Iterator[tuple[str, bytes]]:
    for suffix in (".py", ".js", ".java", ".md", ".txt", ".rst", ".html"):
        yield f"lines/one{suffix}", b"x" * MEGABYTE
        yield f"lines/many{suffix}", (b"# x\n" if suffix == ".py" else b"// x\n") * 100_000


def _pdfs() -> Iterator[tuple[str, bytes]]:
    whole = pdf_with(*(f"Page {number} of a real document" for number in range(8)), title="Whole")
    chance = random.Random(7)
    for step in range(10):
        yield f"pdf/cut{step}.pdf", whole[: len(whole) * step // 10]
    for number in range(16):
        broken = bytearray(whole)
        for _ in range(40):
            broken[chance.randrange(9, len(broken))] = chance.randrange(256)
        yield f"pdf/flipped{number}.pdf", bytes(broken)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros", b"\0" * (50 * MEGABYTE))
    yield "pdf/zip_bomb.pdf", archive.getvalue()
    yield "pdf/zip_bomb_behind_header.pdf", b"%PDF-1.4\n" + archive.getvalue()
    yield "pdf/bomb.pdf", pdf_bomb(60 * MEGABYTE)
    yield "pdf/bomb_in_bomb.pdf", pdf_bomb(60 * MEGABYTE, layers=2)
    yield "pdf/self_page.pdf", whole.replace(b"/Kids [4 0 R", b"/Kids [2 0 R")
    yield "pdf/many_pages.pdf", whole.replace(b"/Count 8", b"/Count 99999999")
    yield "pdf/deep.pdf", pdf_of_streams([(b"[" * 50_000, "")])
    yield "pdf/header.pdf", b"%PDF-1.7"
    yield "pdf/text.pdf", b"just words"
    yield "pdf/garbage.pdf", b"%PDF-1.4\n" + chance.randbytes(50_000)


def _binaries() -> Iterator[tuple[str, bytes]]:
    chance = random.Random(3)
    noise = chance.randbytes(20_000)
    kinds = {
        "noise": noise,
        "printable_noise": bytes(byte or 1 for byte in noise),
        "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + noise,
        "elf": b"\x7fELF\x02\x01\x01" + noise,
        "gzip": gzip.compress(noise),
        "nul": b"x = 1\n\0\ny = 2\n",
        "zeros": b"\0" * 1000,
    }
    for name, data in kinds.items():
        for suffix in (".py", ".md", ".html", ".txt", ".java"):
            yield f"binary/{name}{suffix}", data


def _texts() -> Iterator[tuple[str, bytes]]:
    for suffix in (".py", ".md", ".html", ".pdf", ".txt", ".js"):
        yield f"texts/empty{suffix}", b""
        yield f"texts/blank{suffix}", b" \n\t\r\n"
    yield "texts/controls.txt", bytes(range(1, 32)) * 100
    yield "texts/references.html", b"&#" + b"9" * 100_000 + b";" + b"&#xD800;&#0;" * 1000
    yield "texts/front.md", b"---\n" + b"title: x\n" * 1000
    yield "texts/large.txt", b"words and words\n" * (9 << 16)
