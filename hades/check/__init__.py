"""What a change of documentation breaks: answers, links and statements of two states."""
