"""Tasks of builds: stages, phases, contracts, release, store, reports, alerts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task

from hades.errors import ContractBroken, NotApproved
from hades.evaluation.rankers import read_recipes
from hades.evaluation.serving import RetrievalRegression, evaluate_serving, require_held
from hades.ingest.chunks import embed_chunks, embed_range, pending_ranges
from hades.ingest.phases import Phase
from hades.ingest.sources.remote.sync import describe_syncs
from hades.night.context import BuildContext
from hades.night.contracts.check import contracts_in_words, describe_checked
from hades.night.ranker.stage import STAGE as RANKER_STAGE
from hades.night.ranker.stage import train
from hades.night.release import publish
from hades.night.release.publish import append_alert
from hades.night.report import build_if_past as past_of
from hades.night.report import log_stopped_night as log_stopped
from hades.night.report import summary_lines, write_reports
from hades.night.stage import Night, NightStage, Report, describe_figures
from hades.night.stages import NIGHT, STAGES, check_stage, emit_lineage, run_stage
from hades.night.standing import standing_rows
from hades.night.summary import describe_past, describe_stop, night_page
from hades.ports.store import Mode, ProvisionReport
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.pipeline import Tools
from hades.settings.load import load_settings
from hades.snapshot.pointer import served
from hades.wiring import open_build_context, open_hades, open_store
from schemas.sources import SourceSpec
from tasks import artifacts, policies
from tasks.artifacts import progress_of
from tasks.unit import Unit, graph_name, say, unit

EMBEDS = "stage:embeddings"  # the tag of every task that makes vectors

# A task reads the settings and opens its connections itself; only small values and reports cross
# its border.


@contextmanager
def build_context(unit_name: str) -> Iterator[BuildContext]:
    """The context of the effective settings, with its progress shown where this unit runs."""
    with open_build_context(
        load_settings(),
        progress=progress_of(unit_name),
    ) as context:
        yield context


def _task_of(stage: NightStage) -> Unit[dict[str, Any]]:
    """The task of a stage in the list of `hades/night/stages.py`."""

    @unit(
        stage.title,
        policies.OF_STAGE[stage.is_light],
        stage.describe,
        tags={f"stage:{stage.name}"},
    )
    def run(night: Night, pays: bool | None = None) -> dict[str, Any]:
        with open_hades(
            artifacts.settings_after(pays),
            progress=progress_of(stage.name),
        ) as hades:
            report = run_stage(
                stage,
                hades.build_context,
                hades.ingest,
                night,
            )

        standing = standing_rows(report.get("standing", {}))  # answers that a release changed
        artifacts.table(
            "standing questions",
            standing,
            "standing questions whose answers changed",
        )
        for row in standing:
            artifacts.event(
                "hades.standing.changed",
                "standing",
                question=row["question"],
                cause=row["cause"],
            )

        return report

    return run


STAGE_TASKS: dict[str, Unit[dict[str, Any]]] = {stage.name: _task_of(stage) for stage in NIGHT}


def run_alone(name: str, night: Night, **options: Any) -> dict[str, Any]:
    """Run a stage outside a night, with a table of its own; a night has one page for all."""
    stage = STAGES[name]
    report = STAGE_TASKS[name](night, **options)
    artifacts.table(
        name,
        stage.table(report),
        stage.describe(report),
    )
    return report


@unit("tell lineage", policies.LOCAL)
def tell_lineage(night: Night, stage: str) -> None:
    """Lineage of a stage that ran as a flow of its own."""
    with build_context(stage) as context:
        emit_lineage(STAGES[stage], context, night)


@unit(
    "train ranker",
    policies.HEAVY,
    RANKER_STAGE.describe,
    tags={"stage:ranker"},
)
def train_on(night: Night, questions: Path | None) -> dict[str, Any]:
    """Fit a ranker to the exam, judged answers among it, and to these labelled questions."""
    with build_context("ranker") as context:
        report = train(
            context,
            night.as_of,
            questions,
            seconds_left=night.seconds_left(),
        )

    artifacts.table(
        "ranker",
        RANKER_STAGE.table(report),
        RANKER_STAGE.describe(report),
    )
    return report


@unit(
    "ingest",
    policies.HEAVY,
    describe_figures,
    task_run_name="ingest {phase} of {spec.path}",
    tags={"stage:ingest"},
)
def run_phase(phase: str, spec: SourceSpec) -> dict[str, Any]:
    """One phase over one source, so that the Prefect UI shows where the time goes; safe to
    repeat.
    """
    with open_hades(progress=progress_of("ingest")) as hades:
        return hades.ingest.spec(spec, [Phase(phase)]).as_dict()


@unit(
    "sync sources",
    policies.HEAVY,
    describe_syncs,
    tags={"stage:ingest"},
)
def sync_remotes(names: Sequence[str], due: bool) -> list[dict[str, Any]]:
    """Remote sources as they are now; a failed one is a report with its problem."""
    with open_hades(progress=progress_of("sync")) as hades:
        return hades.ingest.sync(list(names), due=due)


@unit(
    "embed again",
    policies.HEAVY,
    describe_figures,
    tags={EMBEDS},
)
def embed_again() -> dict[str, Any]:
    """Every vector by the model the settings name, swapped in at once, and what is derived from
    them.
    """
    with open_hades(progress=progress_of("embeddings")) as hades:
        return hades.ingest.run_from_store([Phase.EMBEDDINGS, Phase.EDGES]).as_dict()


@unit(
    "list shards",
    policies.LOCAL,
    lambda shards: f"{len(shards)} shards",
    tags={EMBEDS},
)
def list_shards() -> list[tuple[str, str]]:
    """Ranges of chunks that have no vector yet; shards can run side by side on any task runner."""
    with open_hades() as hades:
        return pending_ranges(hades.store, hades.embedder.model.tag)


@unit(
    "embed shard",
    policies.SHARD,
    lambda embedded: f"{embedded:,} chunks embedded",
    task_run_name="embed chunks {shard[0]} to {shard[1]}",
    tags={EMBEDS},
)
def embed_shard(shard: tuple[str, str]) -> int:
    """Embed one range; how many chunks that were."""
    with open_hades() as hades:
        return embed_range(
            hades.store,
            hades.embedder,
            *shard,
            progress_of("embeddings"),
        )


@unit(
    "finish embeddings",
    policies.HEAVY,
    describe_figures,
    tags={EMBEDS},
)
def finish_embeddings(embedded: list[int]) -> dict[str, Any]:
    """Whatever no shard covered: after a change of model every vector, swapped in at once."""
    with open_hades() as hades:
        remaining = embed_chunks(
            hades.store,
            hades.embedder,
            hades.home / "cache",
            progress_of("embeddings"),
        )
        states = hades.memory.reembed()

    return {
        "embedded": sum(embedded) + remaining,
        "memory": states,
        "shards": len(embedded),
    }


def _name_check(parameters: dict[str, Any]) -> str:
    return f"check {contracts_in_words(parameters['contracts'])}"


@unit(
    "check contracts",
    policies.HEAVY,
    describe_checked,
    task_run_name=_name_check,
    tags={"contracts"},
)
def check(
    contracts: Sequence[str],
    night: Night | None = None,
    stops: bool = True,
) -> dict[str, Any]:
    """Check every rule of these contracts; raises when one is broken. Those of a night are also
    reported to lineage.
    """
    with build_context("contracts") as context:
        outcome = check_stage(context, night, contracts)

    rows = outcome.rows_to_show(is_part=night is not None)
    artifacts.table(
        "contracts",
        rows,
        "rules by contract and the rows that broke them",
    )
    for rules in outcome.alerts:
        artifacts.event(
            "hades.contract.broken",
            "contracts",
            rules=rules,
            page=str(outcome.page),
        )

    return outcome.require(stops).as_dict()


def check_or_ask(
    contracts: Sequence[str],
    night: Night | None = None,
) -> dict[str, Any]:
    """Check contracts; where the settings say so a person may accept a broken one."""
    try:
        return check(contracts, night)
    except ContractBroken as broken:
        artifacts.accept_or_raise("Go on with a broken contract?", broken)

    return check(contracts, night, stops=False)


@unit("publish what changed", policies.LOCAL)
def release_if(changed: bool, night: Night) -> dict[str, Any] | None:
    """Publish if something that serves has changed; None where nothing has."""
    with build_context("publish") as context:
        return publish.release_if(
            changed,
            context,
            night.as_of,
            night.keep,
        )


def approve_rollback(part: str, to: str | None) -> None:
    """Let a person approve first, where the settings say so; raises `NotApproved` and changes
    nothing.
    """
    figures = (
        f"{served(load_settings().home)} serves now; {part} goes back to "
        f"{to or 'the version before'}."
    )
    refused = NotApproved(
        f"nobody approved rolling back the {part} in time; nothing was changed, run it again"
    )
    artifacts.accept_or_raise(
        f"Roll back the {part}?",
        refused,
        figures,
    )


@unit("roll back", policies.LOCAL)
def roll_back(what: str, to: str | None) -> dict[str, Any]:
    """Let an older graph, or older weights, serve again."""
    with build_context("rollback") as context:
        return asdict(publish.roll_back(context, what, to))


@task(name="provision store", **policies.NETWORK)
def provision_store(only: str | None = None) -> ProvisionReport:
    """Create what the catalogue, or a part of it, declares and is not there."""
    with closing(open_store(load_settings(), Mode.ADMIN)) as store:
        return store.provision(only)


@task(name="check store", **policies.HEAVY)
def check_store() -> list[str]:
    """What is wrong with the store, in sentences; reads everything."""
    with closing(open_store(load_settings(), Mode.READ_ONLY)) as store:
        return store.check()


RECIPES = "auto,hipporag,hirag_pathrag"


@unit("evaluate serving graph", policies.HEAVY)
def evaluate_graph(
    questions: Path | None,
    recipes: str | None,
    accepts: bool = False,
) -> dict[str, Any]:
    """Ask the serving snapshot, compare with the last run that held; raises when recall fell below
    its interval.
    """
    names = read_recipes(recipes, RECIPES)
    report = evaluate_serving(
        load_settings().home,
        _open_graph,
        questions,
        names,
        accepts,
    )
    artifacts.table(
        "evaluation",
        report.get("recall", ()),
        "recall of the serving snapshot",
    )

    for alert in report.get("alerts", ()):
        artifacts.event(
            alert["event"],
            "evaluation",
            subject=alert["sentence"],
            page=report["page"],
        )

    return require_held(report)


def evaluate_or_ask(questions: Path | None, recipes: str | None) -> dict[str, Any]:
    """Evaluate; where the settings say so a person may accept that retrieval got worse: later runs
    compare with it.
    """
    try:
        return evaluate_graph(questions, recipes)
    except RetrievalRegression as worse:
        artifacts.accept_or_raise("Accept worse retrieval?", worse)

    return evaluate_graph(questions, recipes, accepts=True)


@contextmanager
def _open_graph() -> Iterator[tuple[BuildContext, Tools]]:
    settings = load_settings()
    with build_context("evaluate") as context, open_hades(settings) as hades:
        tools = Tools(
            MiniLmTokenizer(),
            hades.embedder,
            settings.hirag_pathrag,
            settings.hipporag,
        )
        yield context, tools


@unit(
    "build past night",
    policies.HEAVY,
    describe_past,
)
def build_if_past(night: Night) -> dict[str, Any] | None:
    """The night of a moment before the newest graph, kept aside; None for any other night."""
    with build_context("past night") as context:
        report = past_of(context, night)

    return report and {
        **report,
        "told": [*summary_lines(report), f"report: {report['report']}"],
    }


@unit("write report", policies.LOCAL)
def write_report(night: Night, report: dict[str, Any]) -> dict[str, Any]:
    """One page and one JSON file in HADES_HOME/reports."""
    with build_context("report") as context:
        page = write_reports(context, night, report)

    return {
        **report,
        "report": str(page),
        "told": [*summary_lines(report), f"report: {page}"],
    }


def log_stopped_night(
    night: Night,
    report: Report,
    error: BaseException,
) -> None:
    """The run of a night that ended early; a plain call, because the flow run is ending too."""
    with build_context("report") as context:
        log_stopped(context, night, report, error)


@contextmanager
def summary_of(night: Night) -> Iterator[dict[str, Any]]:
    """A report to be filled by a night, which becomes one page in the UI however the night ends."""
    settings = load_settings()
    previous = served(settings.home)
    page_of = partial(
        night_page,
        graph=graph_name(settings),
        former=previous,
    )
    report: dict[str, Any] = {}

    try:
        yield report
    except BaseException as error:  # that of a night that is cancelled is no `Exception`
        stop = describe_stop(report, error)
        with suppress(Exception):  # a server that is away must not hide what ended the night
            say("%s: %s", night.name, stop)
            artifacts.page(
                "nightly",
                page_of(night, report, error=error),
                stop,
            )

        raise

    say(
        "%s: %s serves, %s did before",
        night.name,
        served(settings.home),
        previous or "nothing",
    )
    artifacts.page(
        "nightly",
        page_of(night, report),
        f"{night.name}: what changed, what it cost",
    )


@unit("keep alert", policies.LOCAL)
def keep_alert(what: str, subject: str, detail: str) -> str:
    """One line in the log of alerts, one page in the UI; where the log is."""
    path = append_alert(
        load_settings().home,
        datetime.now(UTC),
        what,
        subject,
        detail,
    )
    artifacts.page(
        "alert",
        f"## {what}\n\n{subject}\n\n{detail}\n",
        what,
    )
    return str(path)
