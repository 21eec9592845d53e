"""Retrievers for the frameworks that people use already; each module needs its own extra."""
