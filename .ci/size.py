"""How large the library is, and whether it stays inside its budget: lines, files, late imports of its own modules.

.venv/bin/python .ci/size.py
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOTS = ("flows", "tasks", "hades", "models", "schemas")
BUDGET = {"lines": 64_000, "files": 324, "late imports": 16}


def late_imports(tree: ast.Module) -> int:
    """Imports of our own modules inside functions."""
    found = 0
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
                found += any(name.partition(".")[0] in ROOTS for name in names)
    return found


def main() -> int:
    """Print the figures; 1 where one is above its budget."""
    files = [path for root in ROOTS for path in sorted((ROOT / root).rglob("*.py"))]
    texts = [path.read_text(encoding="utf-8") for path in files]
    found = {
        "lines": sum(text.count("\n") for text in texts),
        "files": len(files),
        "late imports": sum(late_imports(ast.parse(text)) for text in texts),
    }
    sys.stdout.write("library: " + ", ".join(f"{n:,} {name} of {BUDGET[name]:,}" for name, n in found.items()) + "\n")
    above = [name for name, n in found.items() if n > BUDGET[name]]
    if above:
        sys.stderr.write(f"library: {', '.join(above)} above the budget of .ci/size.py: remove something first\n")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
