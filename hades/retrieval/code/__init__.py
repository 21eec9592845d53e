"""Finding code: an index of a repository's units, what a question says of them, one ranking of
files and symbols.
"""
