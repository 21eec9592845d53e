"""Which libraries the processes of the tests use: those of the base installation, or also those of
the extra `flows`.

A small night by Great Expectations and MLflow takes ten times as long as one by their twins of the
base installation, Arrow and a file. `unit/hades/night/contracts` shows that both engines find the
same; tests about the libraries themselves ask for the fixtures `whole_installation` or
`with_mlflow`, and real processes, such as those of the Prefect server, have both.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from hades import budget, wiring
from hades.night.contracts import rule
from tests import registry_template


def set_up_process() -> None:
    """The base installation, registries copied from a template, turns that count processor time."""
    registry_template.copy_new_registries()
    budget.read_clock = time.process_time
    rule.find_spec = wiring.find_spec = lambda _: None


@contextmanager
def whole_installation() -> Iterator[None]:
    """Contracts are checked by Great Expectations, and the registry is MLflow's."""
    base = rule.find_spec
    rule.find_spec = find_spec
    with mlflow_registry():
        yield
    rule.find_spec = base


@contextmanager
def mlflow_registry() -> Iterator[None]:
    """The registry is MLflow's; contracts are checked by Arrow, in a tenth of the time."""
    base = wiring.find_spec
    wiring.find_spec = find_spec
    yield
    wiring.find_spec = base
