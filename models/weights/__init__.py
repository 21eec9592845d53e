"""What an edge is worth: components in [0, 1], squashed into one weight, and the cost that path searches minimise."""
