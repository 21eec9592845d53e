"""Place an entity, super-topics, terms and sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.topics.cluster import NONE, Flags, Labels, Links, Vectors, Weights, dense_labels

# Which topic takes a point that no clustering saw: its neighbours vote, its vector leans.


ROUNDS = 2  # neighbours, then neighbours of neighbours
BLOCK = 8192


@dataclass(frozen=True)
class Points:
    """Everything a vote needs: `trust` (n,) says how much a point's own vector counts beside its neighbours' votes."""

    vectors: Vectors
    links: Links
    trust: Weights


def place(points: Points, labels: Labels, centroids: Vectors, asked: Flags, *, loyalty: float = 0.0) -> Labels:
    """Labels in which every asked point has a topic where anything speaks for one; the others keep theirs.

    A point's score for a topic is the share of its neighbours' votes plus `trust` times the cosine to the centroid,
    plus `loyalty` for the topic it is in. A neighbour's vote is divided by its degree: a hub says little. Points that
    nothing speaks for after both rounds, and that have no vector, stay at -1.
    """
    links = points.links
    voice = (1.0 / np.maximum(links.degree, 1)).astype(np.float32)
    heard = links.weights * voice[links.others]
    has_vector = np.any(points.vectors != 0, axis=1)
    current = np.where(asked, NONE, labels)
    waiting = asked.copy()
    for turn in range(ROUNDS):
        rows = np.flatnonzero(waiting)
        scores_known, best = _best(points, heard, current, labels, centroids, rows, loyalty)
        last = turn == ROUNDS - 1
        ready = scores_known | (has_vector[rows] & last)
        current[rows[ready]] = best[ready]
        waiting[rows[ready]] = False
    return current


def _best(
    points: Points,
    heard: Weights,
    current: Labels,
    before: Labels,
    centroids: Vectors,
    rows: np.ndarray,
    loyalty: float,
) -> tuple[Flags, Labels]:
    """For each row, whether any neighbour voted, and the topic with the highest score."""
    topics = len(centroids)
    voted = np.zeros(len(rows), bool)
    best = np.full(len(rows), NONE, np.int64)
    if not topics:
        return voted, best
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        votes = _count_votes(points.links, heard, current, part, topics)
        total = votes.sum(axis=1, keepdims=True)
        score = votes / np.where(total > 0, total, 1)
        score += points.trust[part, None] * (points.vectors[part] @ centroids.T)
        own = np.flatnonzero(before[part] != NONE)
        score[own, before[part][own]] += loyalty
        voted[start : start + BLOCK] = total.ravel() > 0
        best[start : start + BLOCK] = score.argmax(axis=1)
    return voted, best


def _count_votes(links: Links, heard: Weights, current: Labels, rows: np.ndarray, topics: int) -> Weights:
    """(rows, topics): for each row the votes of its neighbours that have a topic, added one after the other."""
    degree = links.degree[rows]
    asked = np.repeat(np.arange(len(rows)), degree)
    entries = np.repeat(links.starts[rows] - (np.cumsum(degree) - degree), degree) + np.arange(int(degree.sum()))
    asked, entries = asked[::-1], entries[::-1]  # the last neighbour first: sums of float32 depend on the order
    topic = current[links.others[entries]]
    settled = topic != NONE
    votes = np.zeros((len(rows), topics), np.float32)
    np.add.at(votes, (asked[settled], topic[settled]), heard[entries[settled]])
    return votes


# Super-topics: topics joined bottom-up by Ward's criterion, cut so that none holds more than it may.


def supertopics(centroids: Vectors, *, max_fanout: int) -> Labels:
    """A group for each topic, as few groups as the tree allows with at most `max_fanout` topics in each.

    The tree is cut from the top: a branch that is small enough becomes a group, a larger one is opened.
    """
    n = len(centroids)
    if n <= max_fanout:
        return np.zeros(n, np.int64)
    from scipy.cluster.hierarchy import linkage

    tree = linkage(np.round(centroids.astype(np.float64), 6), method="ward")
    labels = np.empty(n, np.int64)
    groups = 0
    open_branches = [2 * n - 2]
    while open_branches:
        branch = open_branches.pop()
        members = _leaves(tree, branch, n)
        if len(members) <= max_fanout:
            labels[members] = groups
            groups += 1
        else:
            open_branches += [int(tree[branch - n, 1]), int(tree[branch - n, 0])]
    return dense_labels(labels)


def _leaves(tree: np.ndarray, branch: int, n: int) -> list[int]:
    found, todo = [], [branch]
    while todo:
        node = todo.pop()
        if node < n:
            found.append(node)
        else:
            todo += [int(tree[node - n, 0]), int(tree[node - n, 1])]
    return found


# English words that say nothing of a topic: the stop list of the Glasgow Information Retrieval Group.


STOP_WORDS = frozenset({
    "a", "about", "above", "across", "after", "afterwards", "again", "against", "all", "almost", "alone", "along",
    "already", "also", "although", "always", "am", "among", "amongst", "amoungst", "amount", "an", "and", "another",
    "any", "anyhow", "anyone", "anything", "anyway", "anywhere", "are", "around", "as", "at", "back", "be",
    "became", "because", "become", "becomes", "becoming", "been", "before", "beforehand", "behind", "being",
    "below", "beside", "besides", "between", "beyond", "bill", "both", "bottom", "but", "by", "call", "can",
    "cannot", "cant", "co", "con", "could", "couldnt", "cry", "de", "describe", "detail", "do", "done", "down",
    "due", "during", "each", "eg", "eight", "either", "eleven", "else", "elsewhere", "empty", "enough", "etc",
    "even", "ever", "every", "everyone", "everything", "everywhere", "except", "few", "fifteen", "fifty", "fill",
    "find", "fire", "first", "five", "for", "former", "formerly", "forty", "found", "four", "from", "front", "full",
    "further", "get", "give", "go", "had", "has", "hasnt", "have", "he", "hence", "her", "here", "hereafter",
    "hereby", "herein", "hereupon", "hers", "herself", "him", "himself", "his", "how", "however", "hundred", "i",
    "ie", "if", "in", "inc", "indeed", "interest", "into", "is", "it", "its", "itself", "keep", "last", "latter",
    "latterly", "least", "less", "ltd", "made", "many", "may", "me", "meanwhile", "might", "mill", "mine", "more",
    "moreover", "most", "mostly", "move", "much", "must", "my", "myself", "name", "namely", "neither", "never",
    "nevertheless", "next", "nine", "no", "nobody", "none", "noone", "nor", "not", "nothing", "now", "nowhere",
    "of", "off", "often", "on", "once", "one", "only", "onto", "or", "other", "others", "otherwise", "our", "ours",
    "ourselves", "out", "over", "own", "part", "per", "perhaps", "please", "put", "rather", "re", "same", "see",
    "seem", "seemed", "seeming", "seems", "serious", "several", "she", "should", "show", "side", "since", "sincere",
    "six", "sixty", "so", "some", "somehow", "someone", "something", "sometime", "sometimes", "somewhere", "still",
    "such", "system", "take", "ten", "than", "that", "the", "their", "them", "themselves", "then", "thence",
    "there", "thereafter", "thereby", "therefore", "therein", "thereupon", "these", "they", "thick", "thin",
    "third", "this", "those", "though", "three", "through", "throughout", "thru", "thus", "to", "together", "too",
    "top", "toward", "towards", "twelve", "twenty", "two", "un", "under", "until", "up", "upon", "us", "very",
    "via", "was", "we", "well", "were", "what", "whatever", "when", "whence", "whenever", "where", "whereafter",
    "whereas", "whereby", "wherein", "whereupon", "wherever", "whether", "which", "while", "whither", "who",
    "whoever", "whole", "whom", "whose", "why", "will", "with", "within", "without", "would", "yet", "you", "your",
    "yours", "yourself", "yourselves",
})  # fmt: skip
# What to call a topic and what to quote for it: characteristic terms, and sentences that use them.
_WORD = re.compile(r"\w+", re.UNICODE)
_TERM = re.compile(r"(?u)\b[^\W\d_]\w+\b")
_FINISHED = re.compile(r"(?:[!?]|(?<!\b[A-Z])\.)[\"\u201d\u2019')\]]*$")
MIN_SENTENCE, MAX_SENTENCE = 40, 320


@dataclass(frozen=True)
class TermCounts:
    """Every term that names say, as often as they say it: the name's row and the term's code.

    A word has its place in `words` as its code; a pair of words has one beyond them.
    """

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    words: list[str]

    def term(self, code: int) -> str:
        """The term of a code."""
        if code < len(self.words):
            return self.words[code]
        first, second = divmod(code - len(self.words), len(self.words))
        return f"{self.words[first]} {self.words[second]}"


def term_counts(names: Sequence[str]) -> TermCounts:
    """Words and word pairs of names, without stop words and numbers; there may be none."""
    numbers: dict[str, int] = {}
    said: list[int] = []
    lengths: list[int] = []
    for name in names:
        before = len(said)
        said += [
            numbers.setdefault(word, len(numbers)) for word in _TERM.findall(name.lower()) if word not in STOP_WORDS
        ]
        lengths.append(len(said) - before)
    words = np.array(said, np.int64)
    rows = np.repeat(np.arange(len(names)), lengths)
    paired = np.flatnonzero(rows[1:] == rows[:-1])
    pairs = len(numbers) * (words[paired] + 1) + words[paired + 1]
    return TermCounts(np.concatenate([rows, rows[paired]]), np.concatenate([words, pairs]), list(numbers))


def characteristic_terms(
    said: TermCounts, labels: Labels, groups: int, limit: int, wanted: Sequence[int] | None = None
) -> dict[int, dict[str, float]]:
    """For each wanted group, or each, the terms that mark it, heaviest first: how often against how common they are.

    Class-based TF-IDF (Grootendorst 2022): frequency in the group times log(1 + mean group length / frequency overall).
    """
    label = labels[said.rows]
    label, codes = label[label != NONE], said.codes[label != NONE]
    terms, places, overall = np.unique(codes, return_inverse=True, return_counts=True)
    weigh = np.log1p(len(codes) / max(1, groups) / np.maximum(overall, 1))
    found = {}
    for group in range(groups) if wanted is None else wanted:
        held, counts = np.unique(places[label == group], return_counts=True)
        found[group] = _top(said, terms[held], np.round(counts * weigh[held], 4), limit)
    return found


def topic_name(terms: Mapping[str, float], parts: int = 3) -> str:
    """The heaviest terms that do not repeat each other, joined by commas; empty when there are none."""
    chosen: list[str] = []
    for term in terms:
        words = set(term.split())
        if not any(words & set(other.split()) for other in chosen):
            chosen.append(term)
        if len(chosen) == parts:
            break
    return ", ".join(chosen)


def best_sentence(text: str, spans: Sequence[tuple[int, int]], terms: Mapping[str, float]) -> tuple[int, int] | None:
    """Of the sentences of a text, the one that says most of the topic's terms for its length.

    It is quoted whole. One of more than `MAX_SENTENCE` characters is quoted only where no other ends like a sentence.
    Headings and very short sentences are quoted only where there is nothing else, and are cut after a word. No
    sentences give None.
    """
    if not spans:
        return None
    long_enough = [span for span in spans if span[1] - span[0] >= MIN_SENTENCE]
    finished = [span for span in long_enough if _is_finished(text[slice(*span)])]
    short = [span for span in finished if span[1] - span[0] <= MAX_SENTENCE]
    if finished and not short:
        return min(finished, key=lambda span: (span[1] - span[0], span[0]))
    candidates = short or long_enough or [max(spans, key=lambda span: (span[1] - span[0], -span[0]))]
    best = max(candidates, key=lambda span: (_says(text[slice(*span)], terms), -span[0]))
    return best if short else _cut(text, best)


def _is_finished(sentence: str) -> bool:
    """Whether a text ends like a sentence: with a full stop that is not that of an initial, and opens with a word."""
    return _FINISHED.search(sentence) is not None and not sentence[:1].islower()


def _top(said: TermCounts, codes: NDArray[np.int64], scores: NDArray[np.float64], limit: int) -> dict[str, float]:
    """The heaviest terms; equal ones in alphabetical order."""
    if len(codes) > limit:
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        codes, scores = codes[scores >= least], scores[scores >= least]
    told = [(-score, said.term(code)) for score, code in zip(scores.tolist(), codes.tolist(), strict=True)]
    return {term: -score for score, term in sorted(told)[:limit]}


def _says(sentence: str, terms: Mapping[str, float]) -> float:
    found = [word.lower() for word in _WORD.findall(sentence)]
    pairs = {f"{first} {second}" for first, second in pairwise(found)}
    said = sum(weight for term, weight in terms.items() if term in pairs or term in found)
    return round(said / math.sqrt(10 + len(found)), 9)


def _cut(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if end - start <= MAX_SENTENCE:
        return span
    cut = text.rfind(" ", start + MIN_SENTENCE, start + MAX_SENTENCE)
    return start, cut if cut > 0 else start + MAX_SENTENCE
