"""What every test run shares: no phoning home, no timed properties, and Prefect's files in a temporary folder."""

import gc
import os
import tempfile

from hypothesis import HealthCheck, settings

# A busy machine makes single examples slow; the budget of a test is pytest's timeout.
settings.register_profile("hades", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hades")

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_CLI_PROMPT": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def pytest_addoption(parser):
    """`--picture DIR`: keep what the explorer looks like while its tests use it."""
    parser.addoption("--picture", help="folder for the pictures of docs/explorer.md")


def pytest_configure():
    """Before anything is imported that reads these."""
    os.environ.update(QUIET)
    os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="hades-prefect-")


def pytest_collection_finish():
    """What is imported by now stays: the collector need not look through it after each few hundred new objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
