"""What is known of a passage: its sentences, words, dates and links."""
