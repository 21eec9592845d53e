"""The library: what a knowledge graph that answers with cited paths means. No Prefect inside."""
