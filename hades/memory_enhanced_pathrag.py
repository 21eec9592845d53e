"""MemoryEnhancedPathRAG by the name and signature that other tools call: it opens what the settings name."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from threading import Lock
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from hades.cache.tiers import TieredMemoryManager
from hades.errors import SettingsError
from hades.retrieval.answer.context_window import ContextWindowManager
from hades.retrieval.enhanced_pathrag import EnhancedPathRAG
from hades.retrieval.turn.answers import Answers
from hades.settings import CacheSettings, PathragSettings, Settings, load_settings
from hades.settings.tenants import inside
from hades.wiring import open_answers

_PLACES = ("nvme_cache_path", "reliable_store_path")


class MemoryEnhancedPathRAG(EnhancedPathRAG):
    """Paths from the graph of the settings, through the tiered cache.

    `config` holds any keys of the sections `pathrag:` and `cache:`, flat; what it leaves out comes from the settings.
    Nothing is read and no model is loaded before the first question.
    """

    _shared: ClassVar[dict[str, MemoryEnhancedPathRAG]] = {}
    _lock: ClassVar[Lock] = Lock()

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        settings: Settings | None = None,
        answers: Answers | None = None,
    ) -> None:
        settings = settings or load_settings()
        rules, tiers = _split(config or {}, settings)
        memory = TieredMemoryManager(tiers, home=settings.home) if rules.enable_caching else None
        super().__init__(answers or open_answers(settings), memory, rules, tenant=settings.tenant or "")
        self.config = rules.model_dump() | tiers.model_dump(mode="json")
        if memory is not None:
            self.config |= {
                "nvme_cache_path": str(memory.place.nvme),
                "reliable_store_path": str(memory.place.reliable),
            }
        self.context_manager = ContextWindowManager(
            rules.context_window_tokens, rules.reserve_tokens, self.answers.tools.tokenizer
        )

    @classmethod
    def shared(cls, config: Mapping[str, Any] | None = None) -> MemoryEnhancedPathRAG:
        """The one instance of this process for these settings, so that requests share its cache."""
        settings = load_settings()
        name = settings.model_dump_json() + json.dumps(dict(config or {}), sort_keys=True, default=str)
        with cls._lock:
            if name not in cls._shared:
                cls._shared[name] = cls(config, settings=settings)
            return cls._shared[name]

    @classmethod
    def close_shared(cls) -> None:
        """Close every shared instance: cached answers go to disk, so that the next process starts warm."""
        with cls._lock:
            for one in cls._shared.values():
                one.close()
            cls._shared.clear()


def _split(config: Mapping[str, Any], settings: Settings) -> tuple[PathragSettings, CacheSettings]:
    """The keys by section, merged over the settings; a tenant's folders stay inside its own folder."""
    known = [*PathragSettings.model_fields, *CacheSettings.model_fields]
    for key in config:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
            raise SettingsError(f"MemoryEnhancedPathRAG has no key {key!r}; {hint}")
    given = dict(config)
    if settings.tenant is not None:
        given |= {key: inside(given[key], settings.tenant) for key in _PLACES if given.get(key) is not None}
    return _merge(settings.pathrag, given), _merge(settings.cache, given)


Part = TypeVar("Part", bound=BaseModel)


def _merge(section: Part, given: Mapping[str, Any]) -> Part:
    fields = type(section).model_fields
    try:
        return type(section).model_validate(
            section.model_dump(exclude_unset=True) | {k: v for k, v in given.items() if k in fields}
        )
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, one['loc']))} is {one['input']!r}: {one['msg']}" for one in error.errors()
        )
        raise SettingsError(f"MemoryEnhancedPathRAG cannot be set up: {wrong}") from None
