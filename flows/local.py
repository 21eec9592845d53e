"""Running a flow by name in this process: recorded on a Prefect server where one is configured,
else plain calls.
"""

from __future__ import annotations

import importlib
from typing import Any

from prefect import Flow
from prefect.exceptions import ParameterTypeError
from prefect.logging import get_logger

from hades.errors import SettingsError
from hades.ports.services import ProgressReport as Progress
from hades.settings.load import load_settings
from hades.telemetry.logs import span
from hades.wiring import observe
from tasks.unit import without_server


def run(
    name: str,
    arguments: dict[str, Any],
    progress: Progress,
) -> Any:
    """Run a flow with parameters as they were given; what it returns."""
    flow: Flow[..., Any] = getattr(importlib.import_module(f"{__package__}.{name}"), name)
    parameters = _validate(flow, arguments)
    settings = load_settings()
    observe(settings)

    if settings.prefect_api_url is not None:
        return flow(**parameters)

    with without_server(progress), span(f"hades.flow.{name}"):
        return flow.fn(**parameters)


def _validate(flow: Flow[..., Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters in their types, or an error that says which are wanted."""
    accepted = flow.parameters.properties
    if unknown := sorted(set(parameters) - set(accepted)):
        takes = ", ".join(sorted(accepted)) or "none"
        raise SettingsError(f"{flow.name} has no parameter {', '.join(unknown)}; it takes {takes}")

    if missing := sorted(set(flow.parameters.required) - set(parameters)):
        raise SettingsError(
            f"{flow.name} needs {', '.join(missing)}; give each as -p {missing[0]}=..."
        )

    log = get_logger("flows")
    log.disabled = True  # it would print the validator's own record before our sentence
    try:
        return flow.validate_parameters(parameters)
    except ParameterTypeError as error:
        message = str(error).replace("Value error, ", "")
        raise SettingsError(f"{flow.name} cannot run with these parameters: {message}") from error
    finally:
        log.disabled = False
