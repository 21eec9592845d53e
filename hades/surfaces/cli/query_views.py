"""`hades query`, `hades explain` and `hades feedback`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hades.errors import SettingsError, StoreError
from hades.ports.clock import utc_now
from hades.retrieval.turn.plan import PlanError
from hades.settings import Settings, load_settings
from hades.surfaces.cli.output import Answer
from hades.telemetry.audit import Audit
from hades.wiring import open_answers, open_store
from schemas.plan import Reason
from schemas.retrieval import Retrieval

LOG_SECONDS = 2.0  # a build may hold the store for longer; the answer does not wait for it
_QUOTED = 400  # characters of a passage that a person is shown


def run_query(
    text: str,
    *,
    recipe: str,
    plan: Path | None,
    paths: int | None,
    as_of: str | None,
    known_at: str | None,
    mode: str,
    as_prompt: bool,
    near: Sequence[str] = (),
) -> Answer:
    """Ask the published graph and log the turn."""
    settings = load_settings()
    with Audit(settings.home / "logs").call("RO", "query"), open_answers(settings) as answers:
        found = answers.retrieve(
            text,
            recipe=recipe,
            plan=None if plan is None else read_plan(plan),
            as_of=moment(as_of, "--as-of"),
            known_at=moment(known_at, "--known-at"),
            max_paths=paths,
            mode=mode,
            near=near,
        )
    note = _logged(settings, found)
    view = (Text(found.prompt),) if as_prompt else _view(found, note)
    return Answer(found.model_dump(mode="json"), view)


def run_feedback(
    query_id: str, good: list[int], bad: list[int], good_passage: list[int], bad_passage: list[int]
) -> Answer:
    """Add a judgement to the log of a turn."""
    from hades.ports.store import Mode
    from hades.retrieval.turn.query_log import judge
    from schemas.telemetry import Judged

    settings = load_settings()
    praise = Judged(paths=tuple(good), passages=tuple(good_passage))
    blame = Judged(paths=tuple(bad), passages=tuple(bad_passage))
    with (
        Audit(settings.home / "logs").call("RW", "feedback"),
        closing(open_store(settings, Mode.READ_WRITE)) as store,
    ):
        feedback = judge(store, query_id, good=praise, bad=blame, at=utc_now())
    document = {"query_id": query_id, "feedback": feedback.model_dump(mode="json")}
    said = "; ".join(
        f"{what}: paths {list(judged.paths)}, passages {list(judged.passages)}"
        for what, judged in (("good", feedback.good), ("bad", feedback.bad))
    )
    return Answer(document, (Text(f"{query_id}: {said}"),))


def run_explain(query_id: str, missing: str | None) -> Answer:
    """Why each path of a logged turn was kept; with a node, why it was not reached."""
    from hades.ports.store import Mode
    from hades.retrieval.answer.explain_turn import explained
    from hades.retrieval.turn.query_log import read_log

    settings = load_settings()
    with Audit(settings.home / "logs").call("RO", "explain"), open_answers(settings) as answers:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            log = read_log(store, query_id)
        document = explained(answers.view, answers.tools, log, missing)
    return Answer(document, tuple(_told(document)))


def _told(document: dict[str, Any]) -> Iterator[Text]:
    """An explanation for a person: what was asked, why each path stands there, what cut the turn, what to do next."""
    yield Text(f"{document['query']}", style="bold")
    yield Text(f"{document['recipe']}, asked {document['at']} of snapshot {document['snapshot']}", style="dim")
    for path in document["paths"]:
        yield Text(f"{path['rank']}. {path['text']}", style="bold")
        yield Text("\n".join(f"   {reason}" for reason in path["why"].split("; ")), style="dim")
    if not document["paths"]:
        yield Text("no path was kept")
    if (missing := document["missing"]) is not None:
        name = f"{missing['name']} ({missing['node']})" if missing["name"] else missing["node"]
        yield Text(f"{name}: {missing['code']}", style="bold")
        yield Text(f"   {missing['sentence']}")
        if seeds := missing["evidence"].get("seeds"):
            yield Text(f"   the search began at {', '.join(seeds)}", style="dim")
        if missing["next"]:
            yield Text(f"   to reach it: {missing['next']}")
    yield from (Text(f"{code}: {sentence}", style="yellow") for code, sentence in document["reasons"].items())


def run_queries(since: str | None) -> Answer:
    """Write the page over the logged questions."""
    from hades.ports.store import Mode
    from hades.retrieval.answer.query_report import write_dashboard

    settings = load_settings()
    with closing(open_store(settings, Mode.READ_ONLY)) as store:
        figures = write_dashboard(store, settings.home / "reports" / "queries.html", moment(since, "--since"))
    ms = figures["ms"]
    lines = [f"{figures['questions']} questions, p50 {ms['p50']:.1f} ms, p95 {ms['p95']:.1f} ms", figures["path"]]
    return Answer(figures, tuple(Text(line) for line in lines))


def read_plan(path: Path) -> dict[str, Any]:
    """A plan from a JSON or YAML file."""
    import yaml

    text = path.read_text(encoding="utf-8")
    try:
        raw = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise PlanError(f"{path} is neither JSON nor YAML: {' '.join(str(error).split())}; mend it") from None
    if not isinstance(raw, dict):
        raise PlanError(f"{path} must hold a mapping such as {{'retriever': {{'k': 6}}}}, not {type(raw).__name__}")
    return raw


def moment(text: str | None, option: str) -> datetime | None:
    """A time as a person writes it; without a zone it is UTC."""
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"{option} is {text!r}; give a date or time such as 2026-01-31 or 2026-01-31T12:00Z"
        ) from None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def _logged(settings: Settings, found: Retrieval) -> str:
    """Keep the turn in the store, within a time; says what became of it when it could not be kept."""
    problem: list[str] = ["the store was busy"]

    def write() -> None:
        from hades.ports.store import Mode
        from hades.retrieval.turn.query_log import log_of, write_log

        try:
            with closing(open_store(settings, Mode.READ_WRITE)) as store:
                write_log(store, log_of(found, utc_now()))
            problem.clear()
        except StoreError as error:
            problem[:] = [str(error)]

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(LOG_SECONDS)
    return f"not logged, so it cannot be judged or explained: {problem[0]}" if problem else ""


def _view(found: Retrieval, note: str) -> tuple[Table | Text, ...]:
    parts: list[Table | Text] = [Text(f"{found.recipe}: {found.why}")] if found.why else []
    for path in found.paths:
        parts.append(Text(f"{path.rank}. {path.text}", style="bold"))
        parts.append(Text(f"   {path.why}", style="dim"))
    for passage in found.passages:
        place = f"{passage.document} [{passage.span[0]}:{passage.span[1]}]"
        parts.append(
            Text(f"[{passage.rank}] {passage.title}  {place}  {passage.score:.3f} {'+'.join(passage.origins)}")
        )
        words = " ".join(passage.text.split())
        parts.append(Text(f"    {words[:_QUOTED]}{'…' if len(words) > _QUOTED else ''}", style="dim"))
    if not found.paths and not found.passages:
        parts.append(Text("nothing was found"))
    parts.append(_spent(found))
    parts += [Text(f"{code}: {about_of(code)}", style="yellow") for code in found.reasons]
    parts.append(Text(f"{found.query_id} (snapshot {found.snapshot}){f'; {note}' if note else ''}", style="dim"))
    return tuple(parts)


def about_of(code: str) -> str:
    """The sentence of a reason."""
    return next(reason.about for reason in Reason if reason == code)


def _spent(found: Retrieval) -> Table:
    """What the turn cost, stage by stage, against its budget."""
    table = Table(box=None, pad_edge=False)
    for name in ("stage", "reads", "work", "ms", "in", "out", ""):
        table.add_column(name, justify="left" if name in ("stage", "") else "right")
    for stage in found.telemetry.stages:
        marks = " ".join(word for word, is_so in (("capped", stage.capped), ("cut", stage.early_stop)) if is_so)
        counts = (stage.reads, stage.work, f"{stage.ms:.1f}", stage.taken, stage.given)
        table.add_row(stage.name, *map(str, counts), marks)
    budget, spent = found.plan.budget, found.telemetry
    table.add_row(
        "of", str(budget.docs_max), str(budget.work_max), str(budget.latency_ms), "", "",
        f"spent {spent.reads} reads, {spent.work} work, {spent.ms:.1f} ms, {found.tokens.prompt} prompt tokens",
    )  # fmt: skip
    return table
