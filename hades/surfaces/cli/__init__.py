"""The command line, and what makes its start short."""

import gc
import os

# Importing makes some hundred thousand objects that stay. Looking among them for garbage after every 700 new ones, as
# Python does by default, takes a sixth of the time of a question. With this number a question looks for none.
gc.set_threshold(250_000, 10, 10)

# Before its first validator pydantic looks for plugins in the metadata of every installed package, some hundred files.
# No command needs one; a variable that is set already, if only to nothing, stays.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
