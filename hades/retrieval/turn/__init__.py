"""One turn: the question, the plan, the meter and the pipeline."""
