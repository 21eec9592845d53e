"""Rules with the rows they read: of texts, of the graph, of what is written; and how they are
checked.
"""
