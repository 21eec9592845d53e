"""What decides the topics; a change of any of it makes the next build a full one."""

from __future__ import annotations

from dataclasses import dataclass

from hades.errors import SettingsError

VERSION = 4  # raise it with any change of what is computed: the next build is a full one


@dataclass(frozen=True)
class HierarchyRules:
    """Every number the hierarchy depends on, with the value measured to serve (`benchmarks/bench_hierarchy.py`)."""

    min_cluster_size: int = 5
    min_samples: int = 3
    seed: int = 42
    core_limit: int = 20_000  # entities that are clustered; the others are placed by their neighbours
    neighbours: int = 15  # nearest in meaning that each core entity is joined to
    hub_degree: int = 30  # who joins more core entities than this says nothing of any of them
    reduced_dimension: int = 16
    diffusion_steps: int = 8
    structure_runs: int = 3  # Leiden partitions that vote; together they count as much as the density
    code_share: float = 0.3  # from this share of code symbols among entities on, a corpus is a workspace
    code_topic_scale: float = 2.0  # `topic_scale` of a workspace: groups of modules, not whole projects
    code_cluster_size: int = 3  # of a workspace, where three modules may be a topic
    topic_scale: float = 10.0  # resolution is sqrt(core) / this, at least 1: topics grow in number and in size
    consensus_share: float = 0.5
    text_trust: float = 2.0  # how much the vector of a text counts beside the votes of neighbours
    nearness_votes: float = 3.0  # what the nearest texts of a text say, in votes of a relation each
    name_trust: float = 0.3  # that of a name
    person_trust: float = 0.05  # that of a person's name, which says nothing of a topic
    loyalty: float = 0.2  # what speaks for staying when an entity is placed again
    max_fanout: int = 16  # topics below one super-topic
    depth: int = 2  # 1: topics only; 2: topics and super-topics
    match_share: float = 0.25  # of the union that two builds of a topic must share to be the same topic
    rebuild_changed: float = 0.10  # share of entities new, gone or changed since the last full build
    rebuild_drift: float = 0.02  # mean of 1 - cosine between centroids and what their members are today
    summary_sentences: int = 3
    summary_members: int = 6  # the members nearest to the centroid whose texts are read
    summary_tokens: int = 120  # what a language model may write about one topic

    def __post_init__(self) -> None:
        """Refuse what could not give a hierarchy."""
        if self.depth not in (1, 2):
            raise SettingsError(f"hierarchy depth is {self.depth}; the schema holds levels 1 and 2: use 1 or 2")
        if self.max_fanout < 2:
            raise SettingsError(f"hierarchy max_fanout is {self.max_fanout}; a super-topic joins at least 2 topics")
        if min(self.min_cluster_size, self.min_samples, self.neighbours) < 1 or self.min_cluster_size < 2:
            raise SettingsError("hierarchy min_cluster_size must be 2 or more, min_samples and neighbours 1 or more")
