"""Bridges: which edges join topics, which pairs of topics are hot, and the best paths between them."""
