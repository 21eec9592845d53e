"""The exam of a corpus: questions with known answers that the corpus itself supplies."""
