"""The tiered cache: RAM, then the fast disk, then the reliable disk, then the function that computes the value.

The manager never computes a value itself. On a miss it calls the function that the caller gave, so an answer has always
gone through the caller's pruning, version and budget; a key that names all of these identifies the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hades.cache.disk import DiskCache
from hades.cache.lru import LRUCache
from hades.cache.place import CachePlace
from hades.cache.policy import Reuse, importance, starting_tier
from hades.cache.report import CacheReport, rate, tier_report
from hades.cache.tier import MISS, Counts, MemoryTier, TierHit
from hades.errors import HadesError, SettingsError
from hades.ports.clock import utc_now
from hades.settings import CacheSettings, load_settings

logger = logging.getLogger(__name__)

Compute = Callable[[], Any]
Context = Mapping[str, Any]  # "recent_queries": the last questions, the present one last


class TieredMemoryManager:
    """Looks values up from the fastest tier to the slowest and keeps them where their importance says.

    `config` holds any of the keys of the section `cache:`; what it leaves out has its default. Folders that it does
    not name lie under `home`, by default HADES_HOME. Without `uses_disk` entries stay in RAM: a read-only service
    writes nothing.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | CacheSettings | None = None,
        *,
        home: Path | None = None,
        now: Callable[[], datetime] = utc_now,
        uses_disk: bool = True,
    ) -> None:
        self.config = _check(config)
        self.place = CachePlace.under(load_settings().home if home is None else home, self.config)
        self.ram_cache = LRUCache(self.config.ram_cache_size_mb, on_evict=self._demote)
        self.nvme_cache = DiskCache(self.place.nvme, self.config.nvme_cache_size_gb)
        self.reliable_store = DiskCache(self.place.reliable, self.config.reliable_store_size_gb, durable=True)
        disks = {MemoryTier.NVME_RAID0: self.nvme_cache, MemoryTier.RAID1: self.reliable_store}
        self._disks = disks if uses_disk else {}
        self._tiers: dict[MemoryTier, LRUCache | DiskCache] = {MemoryTier.RAM: self.ram_cache, **self._disks}
        self._generation = self.place.generation()
        self._store = Counts()
        self._reuse = Reuse()
        self._now = now

    def get_or_compute(
        self,
        key: str,
        compute: Compute,
        *,
        importance: Callable[[Any], float] | None = None,
        context: Context | None = None,
        keep: Callable[[Any], bool] = lambda value: True,
    ) -> TierHit:
        """What a tier holds, else what `compute` returns, kept if `keep` agrees; its errors are the caller's."""
        found = self.look_up(key)
        if found is not None:
            return found
        before = self._generation
        value = self._compute(compute)
        if keep(value):
            prior = None if importance is None else importance(value)
            self._put(key, value, prior, context, before)
        return TierHit(value, MemoryTier.RAID5)

    def get(
        self, key: str, context: Context | None = None, *, default: Any = None, fetch: Compute | None = None
    ) -> Any:
        """What a tier holds; else what `fetch` reads from the store, which is kept; else `default`.

        A store that fails is logged and reads as `default` (A47). `MISS` as default, or as what `fetch` returns for a
        thing that is not there, is told apart from every stored value.
        """
        try:
            found = self.get_or_compute(
                key, fetch or (lambda: MISS), context=context, keep=lambda value: value is not MISS
            )
        except HadesError as error:
            logger.warning("the store could not be asked for %s: %s", key, error)
            return default
        return default if found.value is MISS else found.value

    def put(self, key: str, value: Any, importance: float | None = None, context: Context | None = None) -> bool:
        """Keep a value in the tier of its importance, or the next lower one that can hold it; whether one could.

        Other tiers let go of the key. An importance that is given is where the measured one starts from.
        """
        self._notice_forgetting()
        return self._put(key, value, importance, context, self._generation)

    def look_up(self, key: str) -> TierHit | None:
        """What a tier holds, and which; an entry that is used often moves a tier up. None when none holds it."""
        self._notice_forgetting()
        self._reuse.asked(key)
        value = self.ram_cache.get(key, MISS)
        if value is not MISS:
            return TierHit(value, MemoryTier.RAM)
        for tier, disk in self._disks.items():
            entry = disk.read(key)
            if entry is not None:
                if entry.access_count >= self.config.promotion_threshold:
                    self._store_in(MemoryTier(tier - 1), key, entry.value, entry.metadata)
                return TierHit(entry.value, tier)
        return None

    def importance_of(self, key: str, value: Any, prior: float | None = None, context: Context | None = None) -> float:
        """How likely the key is to be asked for again, from what was measured; see `hades.cache.policy`."""
        return importance(
            value,
            now=self._now(),
            repeats=self._reuse.repeats(key),
            prior=self._reuse.share if prior is None else prior,
            earlier=list((context or {}).get("recent_queries", ()))[:-1],
        )

    def remove(self, key: str) -> bool:
        """Let go of a key in every tier; whether one held it."""
        return sum(cache.remove(key) for cache in self._tiers.values()) > 0

    def clear(self) -> int:
        """Let go of everything in every tier; how many entries there were."""
        return sum(cache.clear() for cache in self._tiers.values())

    def report(self) -> CacheReport:
        """Hit rate and bytes of every tier; of the store, how often it had to compute."""
        tiers = [
            tier_report(tier, cache.counts, len(cache), cache.current_bytes, cache.max_bytes)
            for tier, cache in self._tiers.items()
        ]
        hits, asked = sum(cache.counts.hits for cache in self._tiers.values()), self.ram_cache.counts.asked
        return CacheReport((*tiers, tier_report(MemoryTier.RAID5, self._store)), asked, hits, rate(hits, asked))

    def close(self) -> None:
        """Put what is in memory on the fast disk, so that the next process starts warm, and give back the files."""
        for key, value in self.ram_cache.items():
            self._demote(key, value)
        self.ram_cache.clear()
        self.nvme_cache.close()
        self.reliable_store.close()

    def _put(self, key: str, value: Any, prior: float | None, context: Context | None, generation: int) -> bool:
        """Store, then look whether something was forgotten since `generation`; if so the value is taken back."""
        worth = self.importance_of(key, value, prior, context)
        first = starting_tier(worth, self.config.importance_threshold) if self._disks else MemoryTier.RAM
        kept = False
        for tier, cache in self._tiers.items():
            if tier >= first and not kept:
                kept = self._store_in(tier, key, value, {"importance": round(worth, 3)})
            else:
                cache.remove(key)
        if kept and self.place.generation() != generation:
            self.remove(key)
            return False
        return kept

    def _store_in(self, tier: MemoryTier, key: str, value: Any, metadata: Mapping[str, Any]) -> bool:
        if tier is MemoryTier.RAM:
            return self.ram_cache.put(key, value)
        return self._disks[tier].put(key, value, metadata)

    def _demote(self, key: str, value: Any) -> None:
        """What leaves memory goes to the fast disk, unless it is there or something was forgotten since it came."""
        if not self._disks or self.place.generation() != self._generation or key in self.nvme_cache:
            return
        self.nvme_cache.put(key, value)
        if self.place.generation() != self._generation:
            self.nvme_cache.remove(key)

    def _notice_forgetting(self) -> None:
        """RAM holds entries of one generation only: it is cleared after a document was forgotten."""
        current = self.place.generation()
        if current != self._generation:
            self.ram_cache.clear()
            self._generation = current

    def _compute(self, compute: Compute) -> Any:
        self._store.asked += 1
        value = compute()
        self._store.hits += value is not MISS
        return value


def _check(config: Mapping[str, Any] | CacheSettings | None) -> CacheSettings:
    """The settings with defaults for what is left out (X-09); a key or a value that means nothing is named."""
    if isinstance(config, CacheSettings):
        return config
    try:
        return CacheSettings.model_validate(dict(config or {}))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        known = ", ".join(CacheSettings.model_fields)
        raise SettingsError(f"the cache cannot be set up: {wrong}; its keys are {known}") from None
