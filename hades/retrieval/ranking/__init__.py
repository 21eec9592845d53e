"""Ranking of candidates: features, rankers, fusion, abstention."""
