"""The vocabulary of a turn: question, seeds, candidates, plan, metered view."""
