"""What every test run shares: no phoning home, no wall-time budgets, slow files first."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from hades.files import hold_lock
from tests import installation, registry_template, warm_process
from tests.patience import examples, is_soak

# A busy machine makes single examples slow; the budget of a test is pytest's timeout. The same
# examples in each run, so that a change alone turns a property red; `make soak` looks for new ones.
settings.register_profile(
    "hades",
    deadline=None,
    max_examples=examples(50),
    derandomize=not is_soak(),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hades")
if not is_soak():  # else constants of every module that is imported by now are among the examples
    providers.HypothesisProvider._local_constants = providers.Constants()

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_DATABASE_TIMEOUT": "120",  # a busy machine repeats no transition of a run
    "PREFECT_API_REQUEST_TIMEOUT": "300",
    # a server whose SQLite file is busy answers 503: asked again for 17 minutes
    "PREFECT_CLIENT_MAX_RETRIES": "8",
    "PREFECT_CLI_PROMPT": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HADES_WARM": "0",  # `hades watch` and `serve` start no further process; one file has it
}

ROOM_BYTES = 4 << 30


def pytest_addoption(parser):
    """`--picture DIR`: keep what the explorer looks like while its tests use it."""
    parser.addoption("--picture", help="folder for the pictures of docs/explorer.md")


def pytest_configure(config):
    """Before anything is imported that reads these. Turns count processor time: a busy machine ends
    none of them.
    """
    os.environ.update(QUIET)
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # each process would compile every library again, for seconds
    sys.dont_write_bytecode = False
    is_large = config.option.markexpr in (
        "soak",
        "wheel",
        "week",
    )  # long histories, whole environments
    folder = tempfile.tempdir = tempfile.gettempdir() if is_large else _fast_folder()
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)  # where `tmp_path` lies
    os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="hades-prefect-")
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="hades-config-")  # trusted folders
    if registry_template.VARIABLE not in os.environ:
        os.environ[registry_template.VARIABLE] = tempfile.mkdtemp(prefix="hades-registry-")
    os.environ.setdefault(warm_process.RUN, str(os.getpid()))
    installation.set_up_process()


def pytest_unconfigure(config):
    """What lies in memory would stay there until the machine restarts."""
    for name in ("PREFECT_HOME", "XDG_CONFIG_HOME"):
        shutil.rmtree(os.environ[name], ignore_errors=True)
    if not hasattr(config, "workerinput"):  # workers share the folder of the first process
        shutil.rmtree(os.environ[registry_template.VARIABLE], ignore_errors=True)


def _fast_folder() -> str:
    """A folder in memory where there is room: on a disk each commit waits about 10 ms, and tests
    make thousands.
    """
    memory = "/dev/shm"
    if (
        not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC
    ):  # tests write programs there
        return tempfile.gettempdir()
    return memory if shutil.disk_usage(memory).free > ROOM_BYTES else tempfile.gettempdir()


def pytest_collection_modifyitems(items):
    """Slow files first: a long file that starts last leaves the other worker without work."""
    slow = {
        item.path
        for item in items
        if any(item.iter_markers("slow")) or any(item.iter_markers("integration"))
    }
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish():
    """What is imported by now stays: the collector need not look through it after each few hundred
    new objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def programs() -> Path:
    """A folder with `hades` and `python` that start at once, for the path of a test that runs many
    of them.
    """
    shared = Path(os.environ[registry_template.VARIABLE])
    with hold_lock(shared / "programs.lock"):
        if not (shared / "programs" / "talk").exists():
            warm_process.start_warm_process(shared / "programs")
    return shared / "programs"


@pytest.fixture
def whole_installation() -> Iterator[None]:
    """For tests of what Great Expectations and MLflow do; the others have their twins of the base
    installation.
    """
    with installation.whole_installation():
        yield


@pytest.fixture
def with_mlflow() -> Iterator[None]:
    """For tests of what stands in MLflow, whoever checks the contracts."""
    with installation.mlflow_registry():
        yield
