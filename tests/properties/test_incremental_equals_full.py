"""After any history of ingesting, changing and forgetting, the store equals a build from scratch of
what remains.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hades.ingest.forget import forget_documents
from hades.ingest.phases import Phase, ingest
from hades.ingest.sources.material import Link, Material
from hades.snapshot.publish import publish
from schemas.nodes import RelationType
from tests.patience import examples
from tests.unit.hades.ingest.corpora import Listed, contents, new_context, passage

NAMES = [
    *(
        "Ada Lovelace",
        "Charles Babbage",
        "Grace Hopper",
        "London",
        "Analytical Engine",
        "Alan Turing (king)",
        "SVM",
    ),
    *(
        "Lovelace",
        "Babbage",
    ),  # alone they are entities of their own, beside the full name a short form of it
]
VERBS = ["met", "admired", "wrote about", "designed the", "was born in", "is a friend of"]
sentences = st.builds(
    lambda subject, verb, target: f"{subject} {verb} {target}.",
    st.sampled_from(NAMES),
    st.sampled_from(VERBS),
    st.sampled_from(NAMES),
)
documents = st.builds(
    lambda number, title, text, triple, cites: passage(
        f"p{number}",
        title,
        " ".join(text),
        triples=(triple,) if triple else (),
        links=(Link(RelationType.REFERS_TO, f"p{cites}"),) if cites != number else (),
    ),
    st.integers(0, 5),
    st.sampled_from(NAMES),
    st.lists(sentences, min_size=1, max_size=4),
    st.none() | st.tuples(st.sampled_from(NAMES), st.sampled_from(VERBS), st.sampled_from(NAMES)),
    st.integers(0, 5),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["ingest", "ingest without edges"]),
        st.lists(documents, min_size=1, max_size=3),
    )
    | st.tuples(st.just("forget"), st.integers(0, 5)),
    min_size=2,
    max_size=5,
)
TWICE = [
    passage("p0", "Ada Lovelace", "Ada Lovelace met Charles Babbage."),
    passage("p0", "Ada Lovelace", "Ada Lovelace was born in London."),
]


@settings(max_examples=examples(4), suppress_health_check=[HealthCheck.too_slow])
@given(history=steps)
@example(  # an edit that is taken back before the edges are derived again
    history=[
        ("ingest", TWICE[:1]),
        ("ingest without edges", TWICE[1:]),
        ("ingest without edges", TWICE[:1]),
    ]
)
def test_the_store_equals_a_build_from_scratch(history: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        context = replace(new_context(Path(folder) / "history"), restores=False)  # as a night is
        held: dict[str, Material] = {}
        for action, what in history:
            if action != "forget":
                batch = list({document.origin: document for document in what}.values())
                phases = list(Phase) if action == "ingest" else [Phase.NODES, Phase.CHUNKS]
                ingest(context, Listed(batch), phases)
                held.update({document.origin: document for document in batch})
            elif f"p{what}" in held:
                certificate = forget_documents(context.store, context.embedder, [f"p{what}"])
                assert certificate.is_complete
                held.pop(f"p{what}")
        ingest(context, Listed([]))
        fresh = new_context(Path(folder) / "fresh")
        ingest(fresh, Listed(list(held.values())))
        assert contents(context.store) == contents(fresh.store)
        assert context.store.check() == []
        published = [
            publish(one.store, Path(folder) / name) for one, name in ((context, "a"), (fresh, "b"))
        ]
        assert published[0].manifest_hash == published[1].manifest_hash
