"""What every part knows of language: tokens, identifiers, stems, sentences, dates, word lists."""
