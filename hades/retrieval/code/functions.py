"""Single functions for a plain question: words of code and vectors of what each function says of itself, together.

A vector of raw code is weak: the model was trained on sentences. The name in words and the first paragraph of the
documentation are a sentence, and short.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from hades.retrieval.code.evidence import unit_scale
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.postings import Scores
from hades.retrieval.code.ranker import FORMAT, DamagedRanker
from hades.retrieval.code.words import code_terms
from hades.text.identifiers import split_identifier

_DOCUMENTATION = re.compile(r"\"\"\"(.*?)\"\"\"|'''(.*?)'''|/\*\*(.*?)\*/", re.S)
_DOCUMENTATION_CHARACTERS = 300
# "how to sort a list in python": the language of all the code tells no two functions apart, and pulls a vector aside.
_LANGUAGE = re.compile(
    r"(?:\b(?:in|using|with)\s+)?(?<![\w.])(?:python|javascript|typescript|java|golang|rust|ruby|php|c\+\+|c#)\s*\d?(?!\w)",
    re.I,
)


def describe_function(name: str, text: str) -> str:
    """The name of a function in words, and the first paragraph of its documentation."""
    found = _DOCUMENTATION.search(text)
    documentation = next(filter(None, found.groups()), "") if found else ""
    first = " ".join(documentation.strip().partition("\n\n")[0].split())[:_DOCUMENTATION_CHARACTERS]
    words = " ".join(split_identifier(name)) or name.lower()
    return f"{words}. {first}"


def question_forms(question: str) -> tuple[str, str]:
    """A question as it is asked, and without the names of programming languages; their vectors are averaged."""
    plain = " ".join(_LANGUAGE.sub(" ", question).split())
    return question, plain or question


def score_functions(index: CodeIndex, question: str, cosines: NDArray[np.float32] | None) -> Scores:
    """A score for each unit; without vectors the words rank alone."""
    weights = function_weights()
    terms = index.words.terms
    query = {terms[word]: 1.0 for word in set(code_terms(question)) if word in terms}
    score = weights["words"] * unit_scale(index.unit_postings.score(query))
    return score if cosines is None else score + weights["cosine"] * cosines.astype(np.float64)


@cache
def function_weights() -> dict[str, float]:
    """The fitted weights of words and cosines."""
    place = files("models.code_ranker").joinpath("functions.json")
    stored = json.loads(place.read_text("utf-8"))
    if stored.get("format") != FORMAT or not {"cosine", "words"} <= stored.get("weights", {}).keys():
        raise DamagedRanker(
            f"{place} does not hold weights of format {FORMAT}; fit them with benchmarks/fit_code_functions.py"
        )
    return {name: float(value) for name, value in stored["weights"].items()}
