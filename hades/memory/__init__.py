"""Memory: states of topics through time, what joins them, what was true and what was believed
when.
"""
