"""From a question to a few cited paths and passages, inside a plan."""
