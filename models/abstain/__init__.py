"""The fitted rule that says when no answer is better than a weak one."""
