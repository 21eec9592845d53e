"""Where candidates come from: seeds, walks, dates, code, a document; one file a search."""
