"""What the documentation tells a reader to type: the fenced blocks of its pages, and a small world
to run them in.

A block fenced as `sh` is run by bash, one fenced as `python` by Python, page by page, from top to
bottom, in a copy of one world (`tests/fixtures/ledger`): a few documents, a little code, corpora as
files, a graph built from the documents, and one question asked. In the text of a page QUERY_ID
stands for the question that was asked last; the ports and the database address that the page names
are replaced by free ones.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / "tests" / "fixtures" / "ledger"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"^(?:[A-Z_]+=\S+ )*(hades|make|prefect|python|curl|docker|kubectl|systemctl|mlflow|\.ci/run)\b"
)

# What a page may say and this machine does not do, with where it is done instead. Nothing else is
# left out.
ELSEWHERE: tuple[tuple[str, str], ...] = (
    (
        r"make "
        r"(demo|serve|format|clean|docs|install|check|test|week|soak|bench|bench-homes|up"
        r"|test-arango)\b",
        "make targets",
    ),
    (r"\.ci/run\b", "continuous integration itself"),
    (
        r"prefect (automation|work-pool|worker|deployment|server|--\S+ deploy)\b",
        "tests/e2e/test_prefect_server.py",
    ),
    (r"python -m pytest\b", "this very run"),
    (r"hades watch\b", "tests/unit/hades/night/test_watch_folder.py: it does not end"),
    (r"pip install\b", "the installation that this run uses"),
    (
        r"(docker|kubectl|systemctl|sudo|mlflow|helm|install|useradd|groupadd)\b",
        "no such engine where tests run",
    ),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str


def pages() -> list[Path]:
    """Every page a person wrote; the reference is generated, the decisions tell and do not
    instruct.
    """
    written = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "deployments" / "README.md"]
    return written + sorted((ROOT / "docs").glob("*.md"))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(language, text) for language, text in FENCE.findall(page.read_text(encoding="utf-8"))
    ]


def commands(text: str) -> list[str]:
    """The commands of a block: comments gone, continued lines joined, what runs elsewhere left
    out.
    """
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [line.strip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.startswith("#") and elsewhere(line) is None]


def elsewhere(line: str) -> str | None:
    """Where a command is run, if not here."""
    bare = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", line)
    return next((where for pattern, where in ELSEWHERE if re.match(pattern, bare)), None)


def script_of(page: Path, query_id: str, replaced: dict[str, str]) -> str:
    """The page as one bash script that stops at the first command that fails and says which it
    was.
    """
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for place, block in enumerate(blocks(page)):
        if block.language == "sh":
            for line in commands(block.text):
                lines += [f"echo {shlex.quote('$ ' + line)} >&2", _as_run(line)]
        elif block.language == "python":
            lines += [
                f"echo 'python block {place}' >&2",
                f"python - <<'HADES_DOC_{place}'\n{block.text}HADES_DOC_{place}",
            ]
    text = "\n".join([f"ASKED={query_id}", *lines]).replace("QUERY_ID", "$ASKED") + "\n"
    for written, real in replaced.items():
        text = text.replace(written, real)
    return text


def _as_run(line: str) -> str:
    """The command; one that serves is put behind, one that asks leaves the id of its question."""
    if _serves(line):
        return _serving(line)
    if line.startswith("hades query"):
        return (
            f"{{ {line}\n}} | tee .answer; ASKED=$(grep -o 'q_[0-9a-f]*' .answer | head -1 || "
            "echo $ASKED)"
        )
    return line


def _serves(line: str) -> bool:
    return bool(re.match(r"^(?:[A-Z_]+=\S+ )*hades (serve\b|mcp .*--port)", line))


def _serving(line: str) -> str:
    """A command that does not end: put behind, and gone on with once it listens."""
    bare = line.split("#", maxsplit=1)[0].strip()
    port, path = re.search(r"--port[ =](\d+)", bare), re.search(r"--uds[ =](\S+)", bare)
    listens = (
        f"[ -S {path[1]} ]"
        if path
        else f"(: < /dev/tcp/127.0.0.1/{port[1] if port else 8377}) 2>/dev/null"
    )
    return f"{bare} & for _ in $(seq 6000); do {listens} && break; sleep 0.1; done; {listens}"


def make_world(folder: Path) -> None:
    """A copy of `tests/fixtures/ledger`; conversations are compressed, as evaluation data is
    shipped.
    """
    shutil.copytree(WORLD, folder)
    for path in sorted((folder / "talks").glob("*.jsonl")):
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
