"""Packing: best last, ids to cite, one budget for everything."""

from __future__ import annotations

from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answer.prompt import fill, pack
from schemas.answer import CitedPassage, Path, PathNode, Topic

TOKENS = MiniLmTokenizer()


def path(name: str, rank: int) -> Path:
    nodes = tuple(PathNode(id=f"entities/{name}{end}", name=name, type="concept") for end in (1, 2))
    text = f"{name} --[cites]--> other"
    return Path(
        rank=rank,
        score=1 / rank,
        reliability=1 / rank,
        confidence=1.0,
        text=text,
        nodes=nodes,
        edges=(),
    )


def passage(key: str, title: str, text: str) -> CitedPassage:
    return CitedPassage.model_validate(
        {
            "rank": 1,
            "id": f"doc_chunks/{key}",
            "document": key,
            "title": title,
            "text": text,
            "score": 1.0,
            "from": (),
        }
    )


PATHS = [path("best", 1), path("good", 2), path("fair", 3)]
PASSAGE = passage("c", "Paris", "Paris\n\nThe capital of France.")


def test_the_best_path_stands_last_under_its_rank_with_its_node_ids():
    packed = pack(TOKENS, PATHS, [], [], prompt_tokens=500, final_context=6)
    assert packed.prompt.split("\n")[4:7] == [
        "3) fair --[cites]--> other (entities/fair1, entities/fair2)",
        "2) good --[cites]--> other (entities/good1, entities/good2)",
        "1) best --[cites]--> other (entities/best1, entities/best2)",
    ]
    assert packed.paths == tuple(PATHS)
    assert packed.trimmed == 0


def test_a_passage_stands_among_the_paths_as_an_edge_from_its_title():
    packed = pack(TOKENS, PATHS[:1], [PASSAGE], [], prompt_tokens=500, final_context=6)
    assert (
        '2) Paris --[contains; snippet: "The capital of France."]--> doc_chunks/c\n1) best'
        in packed.prompt
    )


def test_final_context_bounds_paths_and_passages_together():
    packed = pack(TOKENS, PATHS, [PASSAGE], [], prompt_tokens=500, final_context=3)
    assert [one.text.split()[0] for one in packed.paths] == ["best", "good"]
    assert packed.passages == (PASSAGE,)
    assert packed.trimmed == 1


def test_what_does_not_fit_is_left_out_worst_first():
    frame = TOKENS.count(fill([], ""))
    packed = pack(TOKENS, PATHS, [], [], prompt_tokens=frame + 50, final_context=6)
    assert packed.tokens["prompt"] <= frame + 50
    assert packed.paths == tuple(PATHS[: len(packed.paths)])
    assert 0 < len(packed.paths) < 3
    assert packed.trimmed == 3 - len(packed.paths)


def test_a_budget_below_the_frame_gives_an_empty_prompt():
    packed = pack(TOKENS, PATHS, [PASSAGE], [], prompt_tokens=10, final_context=6)
    assert packed.prompt == ""
    assert packed.tokens == {"prompt": 0, "hierarchy": 0, "paths": 0}
    assert packed.trimmed == 4


def test_a_long_passage_is_cut_inside_its_line_and_counted():
    packed = pack(
        TOKENS, [], [passage("c", "T", "word " * 400)], [], prompt_tokens=500, final_context=6
    )
    line = packed.prompt.split("\n")[4]
    assert 100 < TOKENS.count(line) <= 120
    assert line.endswith('word…"]--> doc_chunks/c')
    assert packed.trimmed == 1


def test_topics_stand_above_super_topic_first_in_at_most_300_tokens():
    topics = [
        Topic(id="clusters/a", level=1, summary="attention"),
        Topic(id="clusters/b", level=2, summary="networks"),
        Topic(id="clusters/c", level=1, summary=""),
    ]
    packed = pack(TOKENS, PATHS, [], topics, prompt_tokens=500, final_context=6)
    assert "Section summaries: networks\n▸ attention\n\n" in packed.prompt
    assert [topic.id for topic in packed.hierarchy] == ["clusters/b", "clusters/a"]
    long = [Topic(id="clusters/a", level=1, summary="word " * 900)]
    assert (
        290
        < pack(TOKENS, [], [], long, prompt_tokens=2000, final_context=6).tokens["hierarchy"]
        <= 300
    )
