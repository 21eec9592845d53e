"""What the stages of a build know of each other: which completed, and from what."""
