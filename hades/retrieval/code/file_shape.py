"""What a path says of its file: a test, something aside of the code, a text, the front of a package."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|spec|specs|conftest\.py)(?:/|$)|(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*[._]spec|[^/]*\.test)\.\w+$|(?:^|/)conftest\.py$",
    re.I,
)
_ASIDE = re.compile(
    r"(?:^|/)(?:docs?|examples?|benchmarks?|asv_bench|build_tools|scripts?|tools?|util(?:s|ities)?_scripts|vendor|third_party|plugins|tutorials?|doc|\.github|ci)(?:/)|(?:^|/)(?:setup|conf|versioneer|_version|noxfile|tasks)\.py$",
    re.I,
)
_CODE = re.compile(
    r"\.(?:pyi?|pyx|[cm]?[jt]sx?|java|kt|scala|go|rs|cc?|cpp|cxx|hh?|hpp|cs|rb|php|swift|lua|jl|sql|sh|vue)$", re.I
)
_PACKAGE = ("__init__.py", "index.js", "index.ts", "mod.rs")


def describe_paths(paths: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Columns of 0 and 1, a row for each path."""
    return {
        "is_test": np.array([float(bool(_TEST.search(path))) for path in paths]),
        "is_aside": np.array([float(bool(_ASIDE.search(path))) for path in paths]),
        "is_text": np.array([float(not _CODE.search(path)) for path in paths]),
        "is_package": np.array([float(path.endswith(_PACKAGE)) for path in paths]),
    }
