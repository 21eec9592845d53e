"""How large and how dense the library is, root by root, and whether it stays inside its bounds.

    .venv/bin/python .ci/size.py

Syntax nodes are counted, not lines: a line can be packed, a node cannot. A bound is lowered when
the code gets simpler; it is never raised to let a change pass. The exceptions, with the nodes that
came: plan, history, the check of pull requests and remote sources (66,000, when evaluation left
with 20,000); rights of readers, tables, what changed, frames and what is kept (21,000); plain steps
in place of expressions (4,000).
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOTS = ("flows", "tasks", "hades", "models", "schemas")
COLUMNS = 100
BOUNDS = {
    "nodes": 647_006,
    "nodes a line": 5.4,
    "nodes a statement": 11.5,
    "comprehensions a 100 statements": 4.1,
    "% nested comprehensions": 0.2,
    "% vague names": 0.3,
    "lines over 100 columns": 0,
    "late imports": 16,
}
# Names that say nothing about what they hold.
VAGUE = frozenset(
    """
    one ones found asked held kept own told said heard other others rest made given named seen taken
    left wanted thing things item items data obj elem stuff res ret tmp val x it each what got put
    way much many some these those mine theirs anew before after beside within here there
    """.split()  # noqa: SIM905
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_nested(comprehension: ast.AST) -> bool:
    """Whether a comprehension loops twice or holds another one."""
    inner = list(ast.walk(comprehension))[1:]
    has_inner = any(isinstance(node, COMPREHENSIONS) for node in inner)
    return has_inner or len(getattr(comprehension, "generators", ())) > 1


def bound_name(node: ast.AST) -> str | None:
    """The name that a node binds: a parameter or a variable."""
    if isinstance(node, ast.arg):
        name = node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        name = node.id
    else:
        return None
    return None if name in ("self", "cls", "_") else name


def count_late_imports(tree: ast.Module) -> int:
    """Imports of our own modules inside functions."""
    count = 0
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            count += any(name.partition(".")[0] in ROOTS for name in names)
    return count


def count_file(path: Path) -> Counter[str]:
    """What one file adds to the counts of its root."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    count = Counter({"files": 1, "lines": len(lines)})
    count["lines over 100 columns"] = sum(len(line) > COLUMNS for line in lines)
    count["late imports"] = count_late_imports(tree)
    for node in ast.walk(tree):
        count["nodes"] += 1
        count["statements"] += isinstance(node, ast.stmt)
        if isinstance(node, COMPREHENSIONS):
            count["comprehensions"] += 1
            count["nested"] += is_nested(node)
        name = bound_name(node)
        if name is not None:
            count["names"] += 1
            count["vague"] += name in VAGUE
    return count


def figures_of(count: Counter[str]) -> dict[str, float]:
    """The figures that have bounds, in the order of `BOUNDS`."""
    return {
        "nodes": count["nodes"],
        "nodes a line": round(count["nodes"] / count["lines"], 1),
        "nodes a statement": round(count["nodes"] / count["statements"], 1),
        "comprehensions a 100 statements": round(
            100 * count["comprehensions"] / count["statements"], 1
        ),
        "% nested comprehensions": round(
            100 * count["nested"] / max(count["comprehensions"], 1), 1
        ),
        "% vague names": round(100 * count["vague"] / max(count["names"], 1), 1),
        "lines over 100 columns": count["lines over 100 columns"],
        "late imports": count["late imports"],
    }


def main() -> int:
    """Print the table; 1 where the whole library is above a bound."""
    total: Counter[str] = Counter()
    rows: dict[str, dict[str, float]] = {}
    for root in ROOTS:
        count: Counter[str] = Counter()
        for path in sorted((ROOT / root).rglob("*.py")):
            count += count_file(path)
        rows[root] = figures_of(count)
        total += count
    rows["library"] = figures_of(total)
    sys.stdout.write(f"{'':32}" + "".join(f"{root:>10}" for root in rows) + f"{'bound':>10}\n")
    for name, bound in BOUNDS.items():
        values = "".join(f"{row[name]:>10,}" for row in rows.values())
        sys.stdout.write(f"{name:32}{values}{bound:>10,}\n")
    is_above = False
    for name, bound in BOUNDS.items():
        figure = rows["library"][name]
        if figure <= bound:
            continue
        is_above = True
        sys.stderr.write(
            f"{name}: {figure:,} is above {bound:,}, its bound in .ci/size.py: simplify first\n"
        )
    return int(is_above)


if __name__ == "__main__":
    sys.exit(main())
