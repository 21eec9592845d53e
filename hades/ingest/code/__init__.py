"""Code as a graph: rows and edges of files, functions, documentation and history."""
