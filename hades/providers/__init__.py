"""Adapters for what HADES asks of the outside: vectors, tokens, language models."""
