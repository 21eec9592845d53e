"""Topics from vectors and edges: density, structure, their consensus, super-topics and what to say of each."""
