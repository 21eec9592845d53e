"""Entities without a language model: names, terms, titles and symbols found over a whole corpus, resolved and linked."""
