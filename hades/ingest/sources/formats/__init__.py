"""One file a format: bytes in, parts of text with the place they were read from out; runs in a confined child."""
