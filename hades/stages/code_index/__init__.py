"""The search index of code without a store: from a folder, or from one commit of a repository after another."""
