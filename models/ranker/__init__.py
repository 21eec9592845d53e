"""A ranker fitted to questions: states of nodes from a graph network, and small networks over a
candidate's numbers.
"""
