"""What follows from one text or one document alone, made once and kept between derivations."""
