"""Topics: clusters of entities and their description."""
