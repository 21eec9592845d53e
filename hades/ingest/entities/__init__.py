"""Entities without a language model: names, terms and symbols found over a corpus, resolved and
linked.
"""
