"""The types of entities and of the edges between nodes, and the bound of what is learned about an edge."""

from __future__ import annotations

from enum import StrEnum

MAX_LEARNED = 4.0  # no setting lets judged answers move a logit further than this


class EntityType(StrEnum):
    """The five types a traversal meets (requirement C9)."""

    PAPER = "paper"
    CONCEPT = "concept"
    METHOD = "method"
    PERSON = "person"
    CODE_SYMBOL = "code_symbol"


class RelationType(StrEnum):
    """Types of entity-to-entity relations: six of specification 002, two of specification 004."""

    CITES = "cites"
    IMPLEMENTS = "implements"
    EXTENDS = "extends"
    REFERS_TO = "refers_to"
    COREF = "coref"
    DERIVES_FROM = "derives_from"
    SIMILAR_TO = "similar_to"
    RELATED_TO = "related_to"


class CodeEdgeType(StrEnum):
    """How code is joined to code and to text."""

    CONTAINS = "contains"
    IMPORTS = "imports"
    CALLS = "calls"
    DESCRIBES = "describes"
    INHERITS = "inherits"
    OVERRIDES = "overrides"
    TESTS = "tests"
    DOCUMENTS = "documents"
    TOUCHED = "touched"
    CHANGES_WITH = "changes_with"
