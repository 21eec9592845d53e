"""Stage topics: entities grouped into topics and super-topics."""
