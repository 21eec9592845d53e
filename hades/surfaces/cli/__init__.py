"""The command line, and what makes its start short."""

import gc

# Importing makes some hundred thousand objects that stay. Looking among them for garbage after every 700 new ones, as
# Python does by default, takes a sixth of the time of a question.
gc.set_threshold(50_000, 10, 10)
