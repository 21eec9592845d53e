"""Libraries that would otherwise report home are told not to, before they are loaded; what a person set stays."""

from __future__ import annotations

import os

_QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GX_ANALYTICS_ENABLED": "false",
    "ORT_DISABLE_TELEMETRY": "1",
}


def keep_libraries_quiet() -> None:
    """Set what is not set."""
    for variable, value in _QUIET.items():
        os.environ.setdefault(variable, value)
