"""A build that is shown first: made beside the graph, then taken over or thrown away."""
