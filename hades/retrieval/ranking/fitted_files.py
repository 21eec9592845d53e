"""Fitted numbers that come with the library: JSON files under `models/`, checked when they are read."""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hades.errors import HadesError
from models.abstain.infer import BadRules, Rule, Rules, read_rules
from models.fusion.infer import BadFusion, FusionModel, read_fusion
from models.linear_looks.infer import BadLooks, LinearLooks, read_looks

log = logging.getLogger(__name__)
FILE = "default.json"
# Written by hand, for an installation without the fitted file: answer where a word or a similarity supports it.
RULES_BY_HAND = Rules(Rule(20.0, 0.5, 2.0, -9.0), Rule(0.0, 10.0, 2.0, -9.0))


@lru_cache(maxsize=1)
def fusion_model() -> FusionModel | None:
    """The fitted ranking; None, with a warning, where the file is missing or cannot be used: weights by hand serve."""
    body = _read("models.fusion")
    try:
        return None if body is None else read_fusion(body)
    except BadFusion as error:
        log.warning("models/fusion/%s cannot be used: %s; weights by hand serve", FILE, error)
        return None


@lru_cache(maxsize=1)
def abstain_rules() -> Rules:
    """The fitted rules of abstention; rules by hand, with a warning, where the file is missing or cannot be used."""
    body = _read("models.abstain")
    try:
        return RULES_BY_HAND if body is None else read_rules(body)
    except BadRules as error:
        log.warning("models/abstain/%s cannot be used: %s; rules by hand serve", FILE, error)
        return RULES_BY_HAND


@lru_cache(maxsize=3)
def linear_looks(name: str) -> LinearLooks:
    """The coefficients of the multi-hop reranker (`multihop`), of the recipe `memory`, or of `placed` questions.

    They have no stand-in: without them the recipes would rank by nothing.
    """
    body = _read("models.linear_looks", f"{name}.json")
    try:
        return read_looks(body or {})
    except BadLooks as error:
        raise HadesError(f"models/linear_looks/{name}.json cannot be used: {error}; reinstall HADES") from error


def _read(package: str, name: str = FILE) -> dict[str, Any] | None:
    file = files(package).joinpath(name)
    try:
        body: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        log.warning("%s of %s cannot be read: %s", name, package, error)
        return None
    return body
