"""`python -m hades.surfaces.docs` writes the generated pages of the checkout it runs in."""

from __future__ import annotations

import sys
from pathlib import Path

from hades.surfaces.docs.pages import generate_pages


def write_pages(root: Path) -> list[str]:
    """Write the pages whose text changed; their paths."""
    changed = []
    for name, text in generate_pages().items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


if __name__ == "__main__":
    if not Path("pyproject.toml").is_file():
        sys.exit("run this in the repository's root, where pyproject.toml stands")
    sys.stdout.write("".join(f"wrote {name}\n" for name in write_pages(Path())) or "every page is current\n")
