"""The ranker of code: boosted trees that order files, and symbols, by what a question says of them."""
