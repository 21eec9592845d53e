"""What one build leaves for the next: the stage ledger, edits by hand, the fitted ranker."""
