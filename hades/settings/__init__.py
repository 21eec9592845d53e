"""One settings tree, each key described; the environment wins over hades.yaml, which wins over the defaults."""

from hades.settings.hirag import HiragPathrag
from hades.settings.load import FILE_NAME, load_settings, unknown_variables
from hades.settings.tree import Settings, variable_of

__all__ = ["FILE_NAME", "HiragPathrag", "Settings", "load_settings", "unknown_variables", "variable_of"]
