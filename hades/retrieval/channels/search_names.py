"""Names of the searches that give seeds. Kept apart from them: a recipe is declared without loading NumPy."""

from __future__ import annotations

VECTOR, LEXICAL, NAMES = "vector", "lexical", "names"
SEARCHES: tuple[str, ...] = (VECTOR, LEXICAL, NAMES)
