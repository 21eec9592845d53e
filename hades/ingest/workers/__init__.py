"""Child processes that read documents, and what goes between them and their parent."""
