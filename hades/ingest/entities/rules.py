"""The few numbers that decide what is known as a name; one frozen value, so a build can be repeated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EntityRules:
    """Thresholds of the gazetteer, of alias resolution and of co-occurrence. Texts are chunks."""

    min_texts: int = 2  # a capitalised name met in fewer texts is kept where it stands, but not looked for elsewhere
    max_texts: int = 200  # one met in more tells nothing apart ...
    max_share: float = 0.005  # ... unless that is no larger share of the corpus than this
    term_min_texts: int = 3
    term_min_association: float = 0.25  # normalised pointwise mutual information of a term's halves
    term_min_share: float = 0.1  # of a proper noun's occurrences that a term beginning with it must hold
    case_free_letters: int = 10  # a single word at least this long is found in any case
    acronym_min_share: float = 0.6  # of the documents that explain an acronym, those that agree
    fuzzy_min_letters: int = 12
    fuzzy_min_score: float = 0.93
    max_related: int = 12  # co-occurrence relations kept for one entity
    min_together: int = 2  # sentences in which two entities must meet
    kept_apart: frozenset[tuple[str, str]] = frozenset()  # (alias, canonical) merges a person has undone

    def text_cap(self, n_texts: int) -> int:
        """The largest number of texts a found name may occur in."""
        return max(self.max_texts, int(self.max_share * n_texts))
