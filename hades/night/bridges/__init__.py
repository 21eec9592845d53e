"""Stage that keeps the best paths between topics."""
