"""The rows of the store as arrays of a snapshot: nodes, edges, documents, bridges and vectors."""
