"""Code files as facts: symbols, imports, calls, comments."""
