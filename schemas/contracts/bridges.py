"""Bridges: each cached path can be walked edge by edge in the graph as it is now."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, between, holds, later

MAX_BRIDGE_EDGES = 5
_BUILD = "run `hades repair bridges`"

CONTRACT = Contract(
    "bridges",
    "relations that join topics, and cached paths between topics",
    (
        Rule(
            "bridges.coref_never_labelled",
            "relations",
            "coref is never a bridge",
            holds("may_be_bridge"),
            ("type",),
            repair=_BUILD,
        ),
        Rule(
            "bridges.label_joins_two_topics",
            "relations",
            "a relation labelled a bridge joins two topics",
            holds("joins_two_topics"),
            ("from_topic", "to_topic"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.length_in_range",
            "bridge_cache",
            f"a bridge has 1 to {MAX_BRIDGE_EDGES} edges",
            between("n_edges", 1, MAX_BRIDGE_EDGES),
            repair=_BUILD,
        ),
        Rule(
            "bridges.one_node_more_than_edges",
            "bridge_cache",
            "a bridge has one node more than edges",
            holds("nodes_fit_edges"),
            ("n_nodes", "n_edges"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.nodes_exist",
            "bridge_cache",
            "every node of a bridge is stored",
            holds("nodes_exist"),
            ("missing_node",),
            repair=_BUILD,
        ),
        Rule(
            "bridges.edges_exist",
            "bridge_cache",
            "every edge of a bridge is stored",
            holds("edges_exist"),
            ("missing_edge",),
            repair=_BUILD,
        ),
        Rule(
            "bridges.edges_join_nodes",
            "bridge_cache",
            "each edge of a bridge joins the nodes beside it",
            holds("edges_join_nodes"),
            ("nodes", "edges"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.no_node_twice",
            "bridge_cache",
            "a bridge passes each node once",
            holds("is_loopless"),
            ("nodes",),
            repair=_BUILD,
        ),
        Rule(
            "bridges.coref_never_crosses",
            "bridge_cache",
            "no coref leads a bridge from one topic to another",
            holds("no_coref_crosses"),
            ("edges",),
            repair=_BUILD,
        ),
        Rule(
            "bridges.edges_stand",
            "bridge_cache",
            "no edge of a bridge has ended or was withdrawn",
            holds("edges_stand"),
            ("edges",),
            repair=_BUILD,
        ),
        Rule(
            "bridges.topics_exist",
            "bridge_cache",
            "a bridge joins two different level 1 topics that are stored",
            holds("topics_exist"),
            ("from_cluster", "to_cluster"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.ends_in_their_topics",
            "bridge_cache",
            "a bridge begins and ends in the topics it names",
            holds("ends_in_topics"),
            ("from_cluster", "first_topic", "to_cluster", "last_topic"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.current_generation",
            "bridge_cache",
            "a bridge is of the generation of the weights in use",
            holds("is_current"),
            ("generation", "current_generation"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.cost_adds_up",
            "bridge_cache",
            "a bridge costs what its edges cost together",
            holds("cost_adds_up"),
            ("cost", "cost_of_edges"),
            repair=_BUILD,
        ),
        Rule(
            "bridges.expires_after_created",
            "bridge_cache",
            "a bridge expires after it was made",
            later("expires", "created"),
            repair=_BUILD,
        ),
    ),
)
