"""Asking for help must not load what answering needs."""

import os
import subprocess
import sys

import pytest

from tests.registry_template import put_new_registry

HEAVY = ("pyarrow", "numpy", "prefect", "torch", "arango", "mlflow", "great_expectations", "sqlite3", "yaml")
HEAVY_BUILDS = ("torch", "hdbscan", "mlflow", "great_expectations")
UNUSED = (
    *("yaml", "numpy.ma", "numba", "models.ranker", "models.weights"),
    *(f"hades.retrieval.ranking.{name}" for name in ("learned_ranker", "rerank", "feedback_belief", "prune_by_flow")),
    *(f"hades.retrieval.walks.{name}" for name in ("beam", "neighbourhood", "second_hop", "push_remote")),
    *(f"hades.retrieval.channels.{name}" for name in ("narrow_topics", "placed_search")),
)
PROBE = """
import sys
from hades.surfaces.cli.main import main
for arguments in {commands!r}:
    sys.argv = ["hades", *arguments]
    try:
        main()
    except SystemExit as stop:
        assert stop.code in (0, None), stop.code
    print("LOADED", [name for name in {heavy!r} if name in sys.modules])
"""
WATCH = """
import sys
from hades.surfaces.cli.main import main

class Watched:
    def write(self, text):
        if "from Basel" in text:
            print("WITH THE ANSWER", [name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False

sys.stdout, sys.argv = Watched(), ["hades", "query", "where does the Rhine flow?"]
try:
    main()
except SystemExit as stop:
    assert stop.code in (0, None), stop.code
print("AT THE END", [name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""


def run_commands(commands, heavy, folder, environment=None):
    """Run commands one after the other in one new process; what it printed, and which modules it had after each."""
    program = PROBE.format(commands=commands, heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout, [line for line in done.stdout.splitlines() if line.startswith("LOADED")]


def test_help_loads_nothing_heavy(tmp_path):
    commands = [["--help"], ["--version"], ["doctor", "--help"], ["demo", "--help"]]
    assert run_commands(commands, HEAVY, tmp_path)[1] == ["LOADED []"] * len(commands)


def test_status_loads_no_model_and_no_workflow_engine(tmp_path):
    assert run_commands([["status"]], ("prefect", "torch", "arango", "onnxruntime"), tmp_path)[1] == ["LOADED []"]


def test_settings_load_no_arrays_and_no_catalogue(tmp_path):
    heavy = ("pyarrow", "numpy", "schemas.catalogue", "schemas.edges", "schemas.nodes", "schemas.retrieval")
    program = f"import sys, hades.settings; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_leaves_the_end_of_the_process_no_garbage_to_look_for(tmp_path):
    program = f"import gc\n{PROBE.format(commands=[['status']], heavy=())}\nprint(gc.get_freeze_count() > 10_000)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


def test_a_night_loads_libraries_of_its_stages_only_when_they_have_work(tmp_path):
    heavy = (*HEAVY_BUILDS, "prefect", "scipy", "sklearn", "numba", "pandas", "igraph", "matplotlib")
    modules = "hades.stages.run, hades.stages.release.publish_snapshot, hades.stages.bridges.make_bridges"
    program = f"import sys, {modules}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def asked_home(tmp_path_factory):
    """A published graph of one page, embedded by hashing."""
    from hades.settings import load_settings
    from hades.wiring import open_hades

    folder = tmp_path_factory.mktemp("light")
    (folder / "page.md").write_text("# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n", encoding="utf-8")
    settings = load_settings({"HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}, folder)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "page.md")
        hades.publish()
    put_new_registry(settings.home / "mlflow.db")
    return settings.home


def test_a_night_without_a_change_or_with_a_small_one_loads_no_library_of_a_full_build(asked_home, programs, tmp_path):
    settings = {**os.environ, "HADES_HOME": str(asked_home), "HADES_EMBEDDER": "hashing"}
    heavy = ("pandas", "matplotlib", "mlflow", "prefect", "great_expectations", "scipy", "sklearn", "numba", "igraph")
    subprocess.run([programs / "hades", "run", "nightly"], cwd=tmp_path, env=settings, capture_output=True, check=True)
    derivation = ("hades.ingest.edges", "hades.ingest.entities.derive", "hades.ingest.forget", "hades.ingest.openie")
    derivation += ("pyarrow.parquet", "schemas.retrieval", "hades.snapshot.publish", "hades.snapshot.view")
    unused = ("rich", "hades.surfaces.capabilities.local_commands", "hades.surfaces.capabilities.query")
    output, loaded = run_commands([["run", "nightly", "--quiet"]], (*heavy, *derivation, *unused), tmp_path, settings)
    assert loaded == ["LOADED []"], output
    page = asked_home.parent / "page.md"
    page.write_text(f"{page.read_text()}\nThe Rhine passes Cologne.\n", encoding="utf-8")
    output, loaded = run_commands([["run", "nightly", "-p", "mode=incremental"]], heavy, tmp_path, settings)
    assert "placed locally" in output
    assert loaded == ["LOADED []"], output


def test_answering_loads_no_torch_and_nothing_that_only_builds_need(asked_home, tmp_path):
    heavy = (*HEAVY_BUILDS, "prefect", "onnxruntime", "sklearn", "pandas", "arango")
    recipes = ["vector", "hirag_pathrag", "pathrag", "hipporag", "nexus"]
    commands = [["query", f"where does the Rhine flow? ({recipe})", "--recipe", recipe] for recipe in recipes]
    settings = {**os.environ, "HADES_HOME": str(asked_home), "HADES_EMBEDDER": "hashing"}
    output, loaded = run_commands(commands, heavy, tmp_path, settings)
    assert loaded == ["LOADED []"] * len(recipes)
    assert output.count("from Basel") >= len(recipes)


def test_the_default_question_loads_nothing_that_other_recipes_a_ranker_or_a_settings_file_need(asked_home, tmp_path):
    settings = {**os.environ, "HADES_HOME": str(asked_home), "HADES_EMBEDDER": "hashing"}
    output, loaded = run_commands([["query", "where does the Rhine flow?"]], UNUSED, tmp_path, settings)
    assert loaded == ["LOADED []"], output


def test_a_program_that_reads_an_answer_does_not_wait_for_the_library_of_tables(asked_home, tmp_path):
    settings = {**os.environ, "HADES_HOME": str(asked_home), "HADES_EMBEDDER": "hashing"}
    asked = ["query", "where does the Rhine flow?"]
    output, loaded = run_commands([[*asked, "--json"], asked], ("rich",), tmp_path, settings)
    assert loaded == ["LOADED []"] * 2, output


def test_an_answer_is_shown_before_arrow_is_loaded_to_log_the_turn(asked_home, tmp_path):
    program = WATCH.format(heavy=("pyarrow", "hades.stores.sqlite.store", "schemas.catalogue", "schemas.edges"))
    settings = {**os.environ, "HADES_HOME": str(asked_home), "HADES_EMBEDDER": "hashing"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=settings, capture_output=True, text=True, check=True
    )
    assert "WITH THE ANSWER []" in done.stderr
    assert "AT THE END ['pyarrow'" in done.stderr


@pytest.mark.parametrize(("given", "left"), [({}, "__all__"), ({"PYDANTIC_DISABLE_PLUGINS": ""}, "")])
def test_a_command_looks_for_no_plugins_of_pydantic_unless_it_is_told_to(tmp_path, given, left):
    environment = {name: value for name, value in os.environ.items() if name != "PYDANTIC_DISABLE_PLUGINS"} | given
    program = "import os, hades.surfaces.cli; print(repr(os.environ['PYDANTIC_DISABLE_PLUGINS']))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == repr(left)
