"""Finding memories: search, context, working set."""
