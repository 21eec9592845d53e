"""What is fitted: arrays in, arrays out, no I/O. Same seed, same answer."""
