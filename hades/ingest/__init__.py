"""Turning material into nodes, chunks, embeddings and edges."""
