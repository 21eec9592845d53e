"""What the one ranking sees of a passage: every feature with its meaning, its unit and its source.

All of them compare across corpora and embedders: values in units of their spread among a question's
candidates, reciprocal ranks, shares, logarithms and gaps to the best. `models/fitted/ranking.json`
has what each counts in which context.
"""

from __future__ import annotations

from dataclasses import dataclass

SPREAD, RANK, SHARE, LOG, GAP, FLAG = (
    "spreads from the candidates' mean",
    "1 / rank",
    "share",
    "logarithm",
    "difference from the best",
    "0 or 1",
)
WORDS, VECTOR, WALK, TEXT, TITLE, TIME, ORDER, NEIGHBOURS = (
    "search by words",
    "vectors",
    "walk in the graph",
    "text of the passage",
    "titles",
    "stated times",
    "order of the telling",
    "the other candidates",
)


@dataclass(frozen=True)
class Feature:
    """One feature: its name in a fitted file, what it says, its unit, and where it comes from."""

    name: str
    about: str
    unit: str
    source: str


# Columns of a passage by itself, then those of a telling, then of one beside the others.
FEATURES = tuple(
    Feature(*row)
    for row in (
        ("words", "BM25 of the question in the corpus.", SPREAD, WORDS),
        ("cosine", "Cosine with the question.", SPREAD, VECTOR),
        ("cosine_rank", "Rank by cosine.", RANK, VECTOR),
        ("tokens", "Mean, over its tokens, of the nearest in the passage.", SPREAD, VECTOR),
        ("closely", "BM25 of the question among the candidates.", SPREAD, TEXT),
        ("short", "Length below which a passage is too short to tell anything.", LOG, TEXT),
        ("release", "It tells of a release that was not asked for.", FLAG, TITLE),
        ("walk", "Score in the walk from what the question names.", LOG, WALK),
        ("walk_rank", "Rank in that walk.", RANK, WALK),
        ("again", "Score in the walk from the names that fitting sentences lead to.", LOG, WALK),
        ("again_rank", "Rank in that walk.", RANK, WALK),
        ("cosine_gap", "How far its cosine is below the best.", GAP, VECTOR),
        ("remaining_cosine", "Cosine with what the best leaves of the question.", GAP, VECTOR),
        ("words_share", "BM25 as a share of the best.", SHARE, WORDS),
        ("held", "How much of the question it holds, by rarity.", SHARE, TEXT),
        ("title_held", "How much of the question its title holds.", SHARE, TITLE),
        ("best_sentence", "How well its best sentence fits what is asked.", SHARE, TEXT),
        ("first_sentence", "How well its first sentence fits.", SHARE, TEXT),
        ("named", "The question spells its title.", FLAG, TITLE),
        ("spoken_of_by_named", "How a passage that the question names speaks of it.", SHARE, TITLE),
        ("spoken_of", "How passages that the walk reached well speak of it.", SHARE, TITLE),
        ("speaks_of_named", "It speaks of a passage that the question names.", FLAG, TITLE),
        ("namesakes", "How many candidates share its title.", LOG, TITLE),
        ("namesake_place", "Its place among them by cosine.", LOG, TITLE),
        ("told_words", "BM25 as a share of the best candidate.", SHARE, WORDS),
        ("told_words_rank", "Rank by words.", RANK, WORDS),
        ("told_cosine", "How far its cosine is below the best candidate.", GAP, VECTOR),
        ("told_walk", "Score in the walk among all candidates.", LOG, WALK),
        ("told_walk_rank", "Rank in it.", RANK, WALK),
        ("told_years", "BM25 with the years of the time asked for.", SHARE, TIME),
        ("told_before", "The better of words and cosine of what was said before.", SHARE, ORDER),
        ("told_after", "The same of what was said after.", SHARE, ORDER),
        ("told_two_before", "The same of what was said two before.", SHARE, ORDER),
        ("told_two_after", "The same of what was said two after.", SHARE, ORDER),
        ("told_time", "How near the times that it states are to the one asked for.", SHARE, TIME),
        ("told_overlaps", "A time that it states overlaps.", FLAG, TIME),
        ("told_begins", "A time that it states begins in the same year.", FLAG, TIME),
        ("told_ends", "A time that it states ends in the same year.", FLAG, TIME),
        ("told_title", "How much of its title the question spells.", SHARE, TITLE),
        ("told_closely", "BM25 among the candidates as a share of the best.", SHARE, TEXT),
        ("told_holds", "How much of the question it holds, by rarity of stems.", SHARE, TEXT),
        ("told_same_title", "How good the best passages of its title are.", SHARE, NEIGHBOURS),
        ("told_length", "Its length in words.", LOG, TEXT),
        ("asks", "Sentences of it that ask.", SHARE, TEXT),
        ("of_self", "Its speaker speaks of themselves.", FLAG, TEXT),
        ("to_other", "Its speaker speaks to someone.", FLAG, TEXT),
        ("beside_first", "Worth in the look before, below the best.", GAP, NEIGHBOURS),
        ("beside_share", "The exponential of that.", SHARE, NEIGHBOURS),
        ("beside_rank", "Rank in the look before.", RANK, NEIGHBOURS),
        ("beside_spoken_of", "How the good ones speak of it by its title.", SHARE, NEIGHBOURS),
        ("beside_speaks_of", "How it speaks of the good ones.", SHARE, NEIGHBOURS),
        (
            "beside_adds_to_1",
            "What it holds of the question and the best lacks.",
            SHARE,
            NEIGHBOURS,
        ),
        ("beside_adds_to_2", "The same of the best two.", SHARE, NEIGHBOURS),
        ("beside_adds_to_4", "The same of the best four.", SHARE, NEIGHBOURS),
        ("beside_two_steps", "Titles that lead to it in two steps.", LOG, NEIGHBOURS),
        ("beside_bridge_title", "New words of its title in a good one.", SHARE, NEIGHBOURS),
        ("beside_bridge_cover", "Their share of the title.", SHARE, NEIGHBOURS),
        ("beside_bridge_names", "New names that a good one holds too.", SHARE, NEIGHBOURS),
        ("beside_bridge_title_adds", "The first, times what it adds to it.", SHARE, NEIGHBOURS),
        ("beside_bridge_cover_adds", "The second, times what it adds.", SHARE, NEIGHBOURS),
        ("beside_bridge_names_adds", "The third, times what it adds.", SHARE, NEIGHBOURS),
        ("beside_adds", "What it holds of the question and a good one lacks.", SHARE, NEIGHBOURS),
        ("beside_name_fits", "A name in a fitting sentence of a good one.", SHARE, NEIGHBOURS),
        ("beside_name_holds", "The same, by the whole question.", SHARE, NEIGHBOURS),
        ("beside_name_rare", "The same, by its rarity alone.", SHARE, NEIGHBOURS),
        ("beside_name_titled", "The same, of names in its title.", SHARE, NEIGHBOURS),
        ("beside_name_fits_adds", "A fitting name, times what it adds.", SHARE, NEIGHBOURS),
        ("beside_name_rare_adds", "A rare name, times what it adds.", SHARE, NEIGHBOURS),
        ("beside_name_fits_remaining", "A fitting name, times the cosine left.", SHARE, NEIGHBOURS),
        ("beside_leads_to_title", "It spells the title of a good one.", SHARE, NEIGHBOURS),
        ("beside_leads_to_names", "It spells names of a good one.", SHARE, NEIGHBOURS),
        ("beside_leads_by_name", "A fitting sentence of it names a good one.", SHARE, NEIGHBOURS),
    )
)
