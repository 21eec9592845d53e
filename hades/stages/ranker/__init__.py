"""Stage ranker: exports training data, fits the GraphSAGE ranker and decides which version serves."""
