"""The only place that picks adapters: settings in, ports out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hades.errors import SettingsError
from hades.ports.store import GraphStore, Mode
from hades.ports.text import Embedder, LanguageModel
from hades.settings import Settings, load_settings

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.ingest.report import Progress


def open_hades(settings: Settings | None = None, *, progress: Progress | None = None) -> Hades:
    """The graph of the settings (by default those of the environment), ready to ingest and publish.

    The embedded store is provisioned on the way: it needs no other credential than the folder. ArangoDB is not.
    """
    from hades.api import Hades
    from hades.ingest.report import silent
    from hades.providers.tokens import MiniLmTokenizer

    settings = settings or load_settings()
    if settings.store == "sqlite":
        store = open_store(settings, Mode.ADMIN)
        store.provision()
    else:
        store = open_store(settings, Mode.READ_WRITE)
    return Hades(
        store,
        open_embedder(settings),
        MiniLmTokenizer(),
        settings.home,
        open_language_model(settings),
        progress or silent,
    )


def open_store(settings: Settings, mode: Mode) -> GraphStore:
    """The store the settings name, opened for what the caller may do; nothing is created before `provision`."""
    if settings.store == "arango":
        return _open_arango(settings, mode)
    from hades.stores.sqlite.store import SqliteStore

    return SqliteStore.open(settings.home / "graph.db", mode)


def open_embedder(settings: Settings) -> Embedder:
    """What turns text into vectors."""
    if settings.embedder == "hashing":
        from hades.providers.hashing import HashingEmbedder

        return HashingEmbedder()
    if settings.embedder == "minilm":
        from hades.providers.minilm import MiniLmEmbedder

        return MiniLmEmbedder(model_cache(settings))
    from hades.providers.openai_compatible import OpenAIEmbedder

    model = settings.embedder_model or settings.llm_model
    if settings.llm_base_url is None or model is None:
        raise SettingsError(
            "HADES_EMBEDDER is 'openai', which needs HADES_LLM_BASE_URL and HADES_EMBEDDER_MODEL; set both"
        )
    key = settings.llm_api_key
    return OpenAIEmbedder(settings.llm_base_url, model, api_key=key.get_secret_value() if key else None)


def open_language_model(settings: Settings) -> LanguageModel | None:
    """The language model the settings name, or None: everything works without one."""
    if settings.llm_base_url is None or settings.llm_model is None:
        return None
    from hades.providers.openai_compatible import OpenAILanguageModel

    key = settings.llm_api_key
    return OpenAILanguageModel(
        settings.llm_base_url, settings.llm_model, api_key=key.get_secret_value() if key else None
    )


def model_cache(settings: Settings) -> Path:
    """Where exported models are kept."""
    return settings.home / "cache" / "models"


def _open_arango(settings: Settings, mode: Mode) -> GraphStore:
    from hades.stores.arango.endpoints import ArangoEndpoints
    from hades.stores.arango.store import ArangoStore

    endpoints = ArangoEndpoints(
        url=settings.arango_url,
        database=settings.arango_database,
        user=settings.arango_user,
        password=settings.arango_password,
        ro_socket=settings.arango_ro_uds,
        rw_socket=settings.arango_rw_uds,
        admin_socket=settings.arango_admin_uds,
    )
    return ArangoStore.open(endpoints, mode=mode)
