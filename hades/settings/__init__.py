"""One settings tree, each key described; the environment wins over hades.yaml, which wins over the defaults."""

from hades.settings.cache import CacheSettings, PathragSettings
from hades.settings.hirag import HiragPathrag
from hades.settings.load import FILE_NAME, load_settings, unknown_variables
from hades.settings.tenants import for_tenant, tenants
from hades.settings.tree import Settings, variable_of

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
