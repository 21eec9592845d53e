"""One settings tree, each key described; the environment wins over hades.yaml, which wins over the defaults."""

from hades.settings.load import FILE_NAME, for_tenant, load_settings, tenants, unknown_variables
from hades.settings.tree import CacheSettings, HiragPathrag, PathragSettings, Settings, variable_of

__all__ = [
    "FILE_NAME",
    "CacheSettings",
    "HiragPathrag",
    "PathragSettings",
    "Settings",
    "for_tenant",
    "load_settings",
    "tenants",
    "unknown_variables",
    "variable_of",
]
