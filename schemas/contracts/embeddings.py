"""Embeddings: every chunk and entity has a finite vector of unit length, all by one model."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, between, give, holds, one_of

LENGTH_TOLERANCE = 1e-3
_EMBED = "run `hades repair embeddings`"

CONTRACT = Contract(
    "embeddings",
    "vectors of chunks and entities",
    (
        Rule(
            "embeddings.vector_given",
            "vectors",
            "every chunk and every entity has a vector",
            give("dimension"),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.model_named",
            "vectors",
            "a vector names the model that made it",
            holds("model_named"),
            ("embedding_model",),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.one_model",
            "vectors",
            "all vectors were made by one model",
            holds("is_common_model"),
            ("embedding_model",),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.dimension_of_model",
            "vectors",
            "a vector has the dimension of its model",
            holds("dimension_of_model"),
            ("embedding_model", "dimension"),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.vector_finite",
            "vectors",
            "a vector holds finite numbers only",
            holds("is_finite"),
            ("length",),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.unit_length",
            "vectors",
            "a vector has length 1",
            between("length", 1 - LENGTH_TOLERANCE, 1 + LENGTH_TOLERANCE),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.entity_vector_of_known",
            "entities",
            "an entity says whether its vector is of its name or of a document",
            one_of("vector_of", ["name", "document"]),
            repair=_EMBED,
        ),
    ),
)
