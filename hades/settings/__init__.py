"""One settings tree, each key described; the environment wins over hades.yaml, which wins over the
defaults.
"""

from hades.settings.load import for_tenant, load_settings

__all__ = ["for_tenant", "load_settings"]
