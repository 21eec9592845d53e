"""After any history of a repository the store and its snapshot are those of a build from
scratch.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hades.ingest.ingest import Ingest
from hades.snapshot.publish import publish
from tests.patience import examples
from tests.unit.hades.ingest.corpora import contents, new_context
from tests.unit.hades.ingest.sources.repositories import Repository

PYTHON = (
    "from .reader import Reader as PublicReader\nfrom .util import *\n",
    "from .base import Base\nfrom lib import PublicReader\n",
    "class Base:\n    def open(self):\n        return self.close()\n\n    def close(self):\n       "
    " pass\n",
    "class Base:\n    def open(self):\n        check()\n\n\ndef check():\n    return "
    "Base().open()\n",
    "from lib.base import Base\nimport lib.util as tools\n\n\nclass Reader(Base):\n    def "
    "open(self):\n"
    "        tools.check()\n        super().open()\n        return self.close()\n",
    "from lib import PublicReader, check\n\n\ndef test_open():\n    PublicReader().open()\n    "
    "check()\n",
    "from lib.reader import Reader\n\n\nclass Base(Reader):\n    def close(self):\n        "
    "self.open()\n",
    'def check():\n    """Say whether `Reader` is open."""\n    return 1\n',
)
OTHERS = {
    ".c": (
        "int check(void) { return open(); }\nint open(void) { return 1; }\n",
        "int check(void) { return 2; }\n",
    ),
    ".js": (
        "class Reader extends Base { open() { this.close(); } }\n",
        "function check() { return open(); }\n",
    ),
    ".md": (
        "# Guide\n\nUse `lib.reader.Reader` and `check()`.\n",
        "# Guide\n\nCall lib.base.Base.open.\n",
    ),
}
PATHS = (
    *(
        "lib/__init__.py",
        "lib/base.py",
        "lib/reader.py",
        "lib/util.py",
        "lib/more/__init__.py",
        "lib/more/util.py",
    ),
    *("tests/test_reader.py", "tests/test_util.py", "src/x.c", "src/y.js", "docs/guide.md"),
)


def change(files: dict[str, str], chance: random.Random) -> dict[str, str | bytes | None]:
    """A file added, changed, moved or removed: what a commit writes; None removes."""
    path = chance.choice(PATHS)
    suffix = Path(path).suffix
    text = chance.choice(OTHERS.get(suffix, PYTHON))
    if path not in files or chance.random() < 0.5:
        return {path: text}
    moved = chance.choice([one for one in PATHS if Path(one).suffix == suffix])
    return (
        {path: None} if moved == path or chance.random() < 0.5 else {path: None, moved: files[path]}
    )


@settings(max_examples=examples(3), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.booleans())
def test_a_repository_after_any_history_equals_a_build_from_scratch(
    seed: int, with_commits: bool
) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        repository, context = Repository(Path(folder) / "ws"), new_context(Path(folder) / "history")
        files: dict[str, str] = {}
        for step in range(5):
            for _ in range(8 if step == 0 else chance.randint(1, 2)):
                written = change(files, chance)
                repository.commit(f"Step {step}", written)
                files = {
                    path: str(text)
                    for path, text in {**files, **written}.items()
                    if text is not None
                }
            Ingest(context).workspace(repository.folder, history=with_commits)
        fresh = new_context(Path(folder) / "fresh")
        Ingest(fresh).workspace(repository.folder, history=with_commits)
        assert contents(context.store) == contents(fresh.store)
        published = [
            publish(one.store, Path(folder) / name) for one, name in ((context, "a"), (fresh, "b"))
        ]
        assert published[0].manifest_hash == published[1].manifest_hash
