"""The answer: assemble, pack, prompt, explain."""
