"""The only place that picks adapters: settings in, ports out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hades.cache.stores import MIB
from hades.cache.tiers import CachePlace
from hades.errors import NothingPublished, NotProvisioned, SettingsError, SnapshotError, StoreError
from hades.files import FileLock, hold_lock, make_private_folder
from hades.ingest.manifest import known
from hades.memory.memory import Memory
from hades.memory.recall.search import NOTHING_REMEMBERED, StoredMemorySearch
from hades.night.kept_changes import KeptChanges
from hades.night.release.branch import write_base
from hades.ports.services import Embedder, LanguageModel, PaidModels, Tracker, silent
from hades.ports.store import GraphStore, Mode
from hades.providers.file_registry import FileTracker
from hades.providers.hashing import HashingEmbedder
from hades.providers.minilm import MiniLmEmbedder
from hades.providers.mlflow_registry import MlflowTracker, log_feedback
from hades.providers.openai import OpenAIEmbedder, OpenAILanguageModel
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.answers import Answers
from hades.retrieval.pipeline import Tools
from hades.retrieval.ranking.feedback import StoredBeliefs
from hades.retrieval.ranking.select import ExplorationRules
from hades.settings.load import BRANCHES, branches, configuration_folder, load_settings
from hades.settings.tree import Settings, shaping_settings
from hades.snapshot.open import EmptyView, open_snapshot
from hades.snapshot.pointer import served
from hades.snapshot.rights_file import rights_of
from hades.stores.sqlite.changes import SqliteState
from hades.stores.sqlite.store import SqliteStore, copy_database
from hades.telemetry.logs import emitter, send_to
from schemas.sources import SourceKind

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.ingest.ingest import Ingest
    from hades.night.code_workspace import UnbuiltWorkspace
    from hades.night.context import BuildContext
    from hades.ports.services import ProgressReport
    from hades.retrieval.code.index import CodeIndex
    from hades.snapshot.remote import OpenView
    from hades.snapshot.view import GraphView
    from hades.stores.arango.store import ArangoStore
    from schemas.sources import SourceSpec


def open_hades(
    settings: Settings | None = None,
    *,
    progress: ProgressReport | None = None,
    embedder: Embedder | None = None,
) -> Hades:
    """The graph of the settings (by default those of the environment), ready to ingest and publish.

    The embedded store is provisioned on the way: it needs no other credential than the folder.
    ArangoDB is not.
    """
    from hades.api import Hades  # the stages of a build, which no question needs
    from hades.night.context import BuildContext

    settings = settings or load_settings()
    store = open_written_store(settings)
    embedder = embedder or open_embedder(settings)
    language_model = open_language_model(settings)
    answers = cache(lambda: open_answers(settings, embedder))
    context = BuildContext(
        store=store,
        home=settings.home,
        model=embedder.model.tag,
        path=settings.hirag_pathrag.path,
        open_tracker=lambda: open_tracker(settings),
        language_model=language_model,
        progress=progress or silent,
        learning=settings.learning,
        cache=CachePlace.under(settings.home, settings.cache),
        open_tools=lambda: answers().tools,
        emit_lineage=emitter(settings.home / "logs", settings.lineage_url),
        open_past=lambda folder: _open_past(settings, folder, progress, embedder),
        device=settings.device,
        state=SqliteState(settings.home / "graph.db") if settings.store == "sqlite" else None,
        history_bytes=settings.history_mib * MIB,
        nights_kept=settings.nights_kept,
        shaping_settings=shaping_settings(settings),
    )
    return Hades(
        store,
        embedder,
        MiniLmTokenizer(),
        settings.home,
        language_model=language_model,
        answers=answers,
        build_context=context,
        progress=progress or silent,
        history=settings.history,
        workers=settings.ingest_workers,
        hold=lambda name: hold_build(name, settings),
        remote_options=remote_options(settings),
    )


def remote_options(settings: Settings) -> dict[str, Any]:
    """What `RemoteSources` is opened with: those of hades.yaml, and whose additions are trusted."""
    return {
        "configured": settings.sources,
        "configuration": configuration_folder(),
        "trusts_all": settings.trust_folder,
    }


@contextmanager
def _open_past(
    settings: Settings,
    folder: Path,
    progress: ProgressReport | None,
    embedder: Embedder,
) -> Iterator[tuple[BuildContext, Ingest]]:
    """A graph of its own in a folder, with nothing of servers: what is built there is kept, or
    thrown away, whole.
    """
    own_settings = settings.model_copy(
        update={
            "home": folder,
            "store": "sqlite",
            "view": "snapshot",
            "lineage_url": None,
            "approval_minutes": 0.0,
        }
    )
    with open_hades(
        own_settings,
        progress=progress,
        embedder=embedder,
    ) as hades:
        registry = FileTracker(folder / "registry.db", folder / "artifacts")
        yield replace(hades.build_context, open_tracker=lambda: registry), hades.ingest


def observe(settings: Settings) -> None:
    """Send spans where the settings say; safe to repeat, and nothing is loaded where they say
    nothing.
    """
    if settings.otlp_endpoint is not None:
        send_to(settings.otlp_endpoint)


_built_here: ContextVar[Set[str]] = ContextVar("graphs that are built here", default=frozenset())


@contextmanager
def hold_build(
    command: str,
    settings: Settings | None = None,
    wait_seconds: float | None = None,
) -> Iterator[None]:
    """Be the only command that builds this graph: on its home, or in its database for every home.

    Another that builds is waited for as long as the settings say. What a build calls goes on under
    its lock.
    """
    from hades.night.context import BUILD_CHECKS, wait_to_build

    settings = settings or load_settings()

    if wait_seconds is None:
        limit = settings.build_wait_seconds
    else:
        limit = wait_seconds

    if settings.store == "arango":
        graph = settings.arango_database
    else:
        graph = str(settings.home.resolve())

    if graph in _built_here.get():
        yield
        return

    make_private_folder(settings.home)
    with ExitStack() as stack:
        if settings.store == "arango":
            from hades.stores.arango.build_lease import BuildLease

            session = stack.enter_context(closing(_open_arango(settings, Mode.READ_WRITE))).session
            lease = stack.enter_context(closing(BuildLease(session)))
            lock: BuildLease | FileLock = lease
            home = settings.home.resolve()
            BUILD_CHECKS[home] = partial(lease.require, surely=True)
            stack.callback(BUILD_CHECKS.pop, home)
        else:
            lock = stack.enter_context(closing(FileLock(settings.home / ".build.lock")))

        wait_to_build(lock.claim, command, limit)
        graphs = {graph, *_built_here.get()}
        _built_here.set(graphs)  # the threads of this build share this set
        stack.callback(graphs.discard, graph)
        yield


@contextmanager
def open_build_context(
    settings: Settings,
    *,
    progress: ProgressReport | None = None,
) -> Iterator[BuildContext]:
    """What a build works with; the model is named but not loaded, the registry opened when it is
    first asked.
    """
    with open_hades(settings, progress=progress) as hades:
        yield hades.build_context


@contextmanager
def open_memory(
    settings: Settings | None = None,
    *,
    mode: Mode = Mode.READ_WRITE,
) -> Iterator[Memory]:
    """The memory kept in the store of the settings, closed at the end.

    To read, the store is opened to read alone; an embedded one that is not there yet is made.
    """
    settings = settings or load_settings()
    is_there = settings.store == "arango" or store_file(settings).exists()

    if mode is Mode.READ_ONLY and is_there:
        memory_store = _open_memory_to_read(settings)
    else:
        memory_store = open_written_store(settings)

    with closing(memory_store) as store:
        language_model = open_language_model(settings)
        yield Memory(
            store,
            open_embedder(settings),
            language_model=language_model,
            tokenizer=MiniLmTokenizer(),
            home=settings.home,
        )


def open_answers(
    settings: Settings | None = None,
    embedder: Embedder | None = None,
) -> Answers:
    """What answers questions of the graph of the settings: reads only, loads no more than the
    embedder needs.
    """
    settings = settings or load_settings()
    observe(settings)
    check = partial(require_prompt_rows, settings)
    tools = Tools(
        MiniLmTokenizer(),
        embedder or open_embedder(settings),
        settings.hirag_pathrag,
        settings.hipporag,
        beliefs=StoredBeliefs(lambda: open_store(settings, Mode.READ_ONLY), check),
        swapping=ExplorationRules(settings.learning.explore, settings.learning.explore_seed),
        memory=StoredMemorySearch(
            lambda: _open_memory_to_read(settings),
            settings.home,
            check,
        ),
        changes=KeptChanges(settings.home, lambda: open_store(settings, Mode.READ_ONLY)),
    )
    open_current = partial(_open_view_or_empty, settings, tools)
    rights = rights_of(settings.home)

    if settings.view == "arango":
        return Answers(
            open_current,
            lambda: "live",
            tools,
            settings.plan,
            rights=rights,
        )

    return Answers(
        open_current,
        partial(served, settings.home),
        tools,
        settings.plan,
        open_version=lambda snapshot: open_view(settings, snapshot),
        unbuilt=_unbuilt_workspace(settings),
        rights=rights,
    )


def _open_memory_to_read(settings: Settings) -> GraphStore:
    """The store of memory; an embedded one that an older version wrote is brought to today's
    catalogue first.
    """
    store = open_store(settings, Mode.READ_ONLY)
    if settings.store != "sqlite":
        return store

    try:
        store.count("memory_states")
    except NotProvisioned:
        store.close()
        if not store_file(settings).exists():
            raise

        open_written_store(settings).close()
        return open_store(settings, Mode.READ_ONLY)

    return store


def _open_view_or_empty(settings: Settings, tools: Tools) -> OpenView:
    """The graph; or, where nothing is published and memory has something to say, a view of no
    nodes.
    """
    try:
        return open_view(settings)
    except NothingPublished:
        if tools.memory is None or tools.memory.version() == NOTHING_REMEMBERED:
            raise
        return EmptyView([tools.embedder.model.tag] if tools.embedder is not None else [])


def _unbuilt_workspace(settings: Settings) -> Callable[[], CodeIndex | None]:
    """The index of the workspace's own files, for questions before the first build; nothing is read
    before one.
    """

    @cache
    def opened() -> UnbuiltWorkspace:
        from hades.night.code_workspace import UnbuiltWorkspace

        return UnbuiltWorkspace(
            lambda: _known_workspaces(settings),
            settings.home.resolve(),
            MiniLmTokenizer(),
        )

    return lambda: opened().index()


def _known_workspaces(settings: Settings) -> list[SourceSpec]:
    try:
        with closing(open_store(settings, Mode.READ_ONLY)) as store:
            return [spec for spec in known(store) if spec.source == SourceKind.WORKSPACE]
    except StoreError:
        return []


@dataclass(frozen=True)
class _OpenedGraph:
    """What a process opened before a question came: the model, and the snapshot that served."""

    embedder: Embedder
    view: OpenView


_opened_graph: ContextVar[_OpenedGraph | None] = ContextVar("opened graph", default=None)


def lend_graph(embedder: Embedder, view: OpenView) -> None:
    """Use these from now on, in place of opening them again: the view while its snapshot serves.

    Only for a process that answers questions of one home, with the same settings each time.
    """
    _opened_graph.set(_OpenedGraph(embedder, view))


def open_view(settings: Settings, snapshot: str | None = None) -> OpenView:
    """The graph as questions read it: the published snapshot or one that is named, or the live one
    over AQL.
    """
    opened = _opened_graph.get()
    if opened is not None and (snapshot or served(settings.home)) == opened.view.info.snapshot:
        return opened.view

    if settings.view == "arango":
        from hades.stores.arango.neighbourhood import ArangoView

        view = ArangoView(
            _open_arango(settings, Mode.READ_ONLY),
            lambda: _open_local_snapshot(settings),
        )
        view.info  # noqa: B018 - read once here, so that the first turn does not spend time on it
        return view

    return open_snapshot(settings.home, snapshot)


def _open_local_snapshot(settings: Settings) -> GraphView | None:
    """The snapshot that this machine has, for turns that meet a half-applied write; None where it
    has none.
    """
    try:
        return open_snapshot(
            settings.home,
            replaces="rows that a large write has half changed",
        )
    except SnapshotError:
        return None


def open_store(
    settings: Settings,
    mode: Mode,
    busy_seconds: float | None = None,
) -> GraphStore:
    """The store the settings name, opened for what the caller may do; nothing is created before
    `provision`.

    `busy_seconds` is how long the embedded one waits for another process that writes; a server
    queues writers itself.
    """
    if settings.store == "arango":
        return _open_arango(settings, mode)
    if settings.branch is not None and mode is not Mode.READ_ONLY:
        _copy_store(settings.trunk, settings.home)

    return SqliteStore.open(
        store_file(settings),
        mode,
        busy_seconds,
    )


_STORE = "graph.db"


def store_file(settings: Settings) -> Path:
    """The file of the embedded store: of a branch that nobody wrote to yet, that of its home."""
    own = settings.home / _STORE
    return own if own.exists() else settings.trunk / _STORE


def _copy_store(home: Path, branch: Path) -> None:
    """Give a branch the store as it is now, if it has none of its own yet."""
    if (branch / _STORE).exists() or not (home / _STORE).exists():
        return

    with hold_lock(branch / ".store.lock"):
        if not (branch / _STORE).exists():
            half = branch / f".{_STORE}.copy"
            half.unlink(missing_ok=True)
            copy_database(home / _STORE, half)

            with closing(SqliteStore.open(half, Mode.READ_ONLY)) as store:
                write_base(branch, store)

            half.rename(branch / _STORE)


def open_briefly(
    settings: Settings,
    mode: Mode = Mode.READ_ONLY,
    busy_seconds: float | None = None,
) -> GraphStore:
    """The store for what a question can do without: a server that does not answer at once counts
    as away, and for a while is not asked again.
    """
    if settings.store == "arango":
        return _open_arango(settings, mode, is_brief=True)
    return open_store(settings, mode, busy_seconds)


def require_prompt_rows(settings: Settings, collection: str) -> None:
    """Raise `StoreUnavailable` where the store is a server whose rows of a collection cannot be
    read at once.
    """
    if settings.store == "arango":
        with closing(open_briefly(settings)) as store:
            store.count(collection)


def open_written_store(settings: Settings, mode: Mode = Mode.READ_WRITE) -> GraphStore:
    """The store opened to write; the embedded one is provisioned on the way, ArangoDB needs `hades
    provision`.
    """
    make_private_folder(settings.home)
    if settings.store != "sqlite":
        return open_store(settings, mode)

    for name in branches(settings.home):  # which begin as the store is before this write
        _copy_store(settings.home, settings.home / BRANCHES / name)

    store = open_store(settings, Mode.ADMIN)
    store.provision()
    return store


def open_embedder(settings: Settings) -> Embedder:
    """What turns text into vectors."""
    if (opened := _opened_graph.get()) is not None:
        return opened.embedder
    if settings.embedder == "hashing":
        return HashingEmbedder()
    if settings.embedder == "minilm":
        return MiniLmEmbedder(model_cache(settings), device=settings.device)

    model = settings.embedder_model or settings.llm_model
    if settings.llm_base_url is None or model is None:
        raise SettingsError(
            "HADES_EMBEDDER is 'openai', which needs HADES_LLM_BASE_URL and HADES_EMBEDDER_MODEL; "
            "set both"
        )

    key = settings.llm_api_key
    return OpenAIEmbedder(
        settings.llm_base_url,
        model,
        api_key=key.get_secret_value() if key else None,
    )


def paid_models(settings: Settings) -> PaidModels:
    """The models of the settings that stand behind an endpoint, with their prices, for
    forecasts.
    """
    embedder = writer = ""
    if settings.llm_base_url is not None:
        writer = settings.llm_model or ""
        if settings.embedder == "openai":
            embedder = settings.embedder_model or writer

    return PaidModels(
        embedder=embedder,
        embedder_price=settings.embedder_price,
        writer=writer,
        input_price=settings.llm_input_price,
        output_price=settings.llm_output_price,
        count_tokens=lambda text: MiniLmTokenizer().count(text),
    )


def open_language_model(settings: Settings) -> LanguageModel | None:
    """The language model the settings name, or None: everything works without one."""
    if settings.llm_base_url is None or settings.llm_model is None:
        return None

    key = settings.llm_api_key
    return OpenAILanguageModel(
        settings.llm_base_url,
        settings.llm_model,
        api_key=key.get_secret_value() if key else None,
        max_calls=settings.llm_max_calls,
        asks=settings.approval_minutes > 0,
    )


def open_tracker(settings: Settings) -> Tracker:
    """The registry of weights and models: the server the settings name, or files under HADES_HOME.

    Without MLflow (extra `flows`), and in a branch, the registry is one file and a folder.
    """
    home = settings.home.resolve()
    is_plain = settings.branch is not None or find_spec("mlflow") is None

    if settings.mlflow_uri is None and is_plain:
        return FileTracker(home / "registry.db", home / "artifacts")

    uri = settings.mlflow_uri or f"sqlite:///{home / 'mlflow.db'}"
    is_served = urlsplit(uri).scheme in ("http", "https")
    artifacts = None if is_served else home / "artifacts"

    # A home of its own needs no second name.
    if settings.mlflow_uri is None:
        tenant = None
    else:
        tenant = settings.tenant

    return MlflowTracker(
        uri,
        home / "mlflow.lock",
        artifacts,
        tenant,
    )


def tell_feedback(
    settings: Settings,
    query_id: str,
    judged: Mapping[str, object],
    who: str,
) -> None:
    """Feedback as assessments of the turn's trace, where the MLflow server of the settings is sent
    the traces.
    """
    collector = urlsplit(settings.otlp_endpoint or "").netloc
    if settings.mlflow_uri is None or not collector:
        return
    if collector == urlsplit(settings.mlflow_uri).netloc:
        log_feedback(
            settings.mlflow_uri,
            query_id,
            judged,
            who,
        )


def model_cache(settings: Settings) -> Path:
    """Where exported models are kept."""
    return settings.home / "cache" / "models"


def _open_arango(
    settings: Settings,
    mode: Mode,
    *,
    is_brief: bool = False,
) -> ArangoStore:
    from hades.stores.arango.client import Account, ArangoEndpoints
    from hades.stores.arango.store import ArangoStore, brief_limits

    accounts = []

    if settings.arango_rw_user is not None and settings.arango_rw_password is not None:
        password = settings.arango_rw_password.get_secret_value()
        accounts.append(Account(settings.arango_rw_user, password, "rw"))

    if settings.arango_ro_user is not None and settings.arango_ro_password is not None:
        password = settings.arango_ro_password.get_secret_value()
        accounts.append(Account(settings.arango_ro_user, password, "ro"))

    endpoints = ArangoEndpoints(
        url=settings.arango_url,
        database=settings.arango_database,
        user=settings.arango_user,
        password=settings.arango_password,
        ro_socket=settings.arango_ro_uds,
        rw_socket=settings.arango_rw_uds,
        admin_socket=settings.arango_admin_uds,
        accounts=tuple(accounts),
    )
    limit = settings.arango_transaction_limit_mib
    return ArangoStore(
        endpoints,
        mode=mode,
        approximate=settings.arango_vector_index,
        transaction_share=settings.arango_transaction_share,
        transaction_limit_bytes=None if limit is None else limit * 1024 * 1024,
        **(brief_limits(settings.arango_url) if is_brief else {}),
    )
