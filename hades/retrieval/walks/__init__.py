"""Walks over the graph: PageRank, flow, beam, best paths."""
