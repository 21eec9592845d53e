"""Put every root of the repository under one installed name.

In the repository `flows`, `tasks`, `models`, `schemas` and `aql` stand beside `hades` and are
imported by these names. A wheel must not install them: a user's own `models` or `tasks` package
would hide them. So the wheel holds `hades.flows`, `hades.tasks` and so on, and the import
statements of the copied files are changed while it is built (docs/adr/0017-one-installed-name.md).
`benchmarks` is for checkouts: `hades eval` finds its evaluation sets there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOTS = ("flows", "tasks", "models", "schemas", "aql")
_NAMES = "|".join(ROOTS)
_FROM = re.compile(rf"^(\s*from )({_NAMES})(?=[. ])", re.MULTILINE)
_IMPORT = re.compile(rf"^(\s*)import ({_NAMES})$", re.MULTILINE)


def under_one_name(source: str) -> str:
    """The text of a module with its imports of other roots changed to subpackages of `hades`."""
    return _IMPORT.sub(r"\1from hades import \2", _FROM.sub(r"\1hades.\2", source))


class BuildUnderOneName(build_py):
    """Copies modules as setuptools does, then changes their imports."""

    def build_module(self, module: str, module_file: str, package: str) -> tuple[str, bool]:
        """Copy one module into the build folder."""
        copied, was_copied = super().build_module(module, module_file, package)
        path = Path(self.get_module_outfile(self.build_lib, package.split("."), module))
        path.write_text(under_one_name(path.read_text(encoding="utf-8")), encoding="utf-8")
        return copied, was_copied


if "editable_wheel" in sys.argv:  # a checkout: every root by its own name, from where it lies
    names = ("hades", "benchmarks", *ROOTS)
    arrangement = {"packages": find_packages(include=[f"{name}*" for name in names])}
else:
    inside = {root: find_packages(include=[root, f"{root}.*"]) for root in ROOTS}
    arrangement = {
        "packages": [
            *find_packages(include=["hades", "hades.*"]),
            *(f"hades.{one}" for own in inside.values() for one in own),
        ],
        "package_dir": {"hades": "hades", **{f"hades.{root}": root for root in ROOTS}},
        "cmdclass": {"build_py": BuildUnderOneName},
    }
setup(**arrangement)
