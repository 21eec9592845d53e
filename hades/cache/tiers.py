"""Look-up order, importance, place, report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import ValidationError

from hades.cache.stores import MISS, Counts, DiskCache, LRUCache, MemoryTier, TierHit, to_json
from hades.errors import HadesError, SettingsError
from hades.files import hold_lock, write_whole
from hades.ports.services import utc_now
from hades.settings.load import load_settings
from hades.settings.tree import CacheSettings
from hades.text.dates import parse_moment

# Where the tiers of a graph lie. A small file counts the times that something was forgotten; its number is part of
# every key, so that what was stored before is never found again, whichever process holds it.


@dataclass(frozen=True)
class CachePlace:
    """The folders of the two tiers on disk, and the file that counts acts of forgetting."""

    nvme: Path
    reliable: Path
    generation_file: Path

    @classmethod
    def under(cls, home: Path, settings: CacheSettings | None = None) -> CachePlace:
        """The folders that the settings name, else those under the home."""
        chosen, folder = settings or CacheSettings.model_construct(), home / "cache"
        return cls(
            nvme=chosen.nvme_cache_path or folder / "nvme",
            reliable=chosen.reliable_store_path or folder / "reliable",
            generation_file=folder / "generation",
        )

    def generation(self) -> int:
        """How often something was forgotten; cheap enough to ask before every look-up."""
        try:
            return int(self.generation_file.read_text("ascii"))
        except FileNotFoundError:
            return 0
        except ValueError:  # the file is damaged: no entry has this number
            return -1

    def forget_everything(self) -> int:
        """Make all that is kept unreachable in every process, then delete it from disk; how many entries went.

        In this order: whoever stores an answer meanwhile looks at the number afterwards and takes it back.
        """
        self._advance()
        gone = 0
        for folder in (self.nvme, self.reliable):
            if folder.is_dir():
                tier = DiskCache(folder)
                gone += tier.clear()
                tier.close()
        return gone

    def _advance(self) -> None:
        with hold_lock(self.generation_file.with_suffix(".lock")):
            write_whole(self.generation_file, str(self.generation() + 1))


# Where an entry starts: importance = (prior + repeats) / (1 + repeats) + recency + confidence + recent question, within
# [0, 1]. `prior` is what the caller says, else the share of keys that were asked for again so far; the other terms are
# those of requirement A44. There is no term for length: scoring holds length against a path.


BASE = 0.5
RECENCY = ((1, 0.3), (7, 0.2), (30, 0.1))  # days, bonus
CONFIDENCE = ((0.8, 0.2), (0.5, 0.1))  # above, bonus
RECENT_QUESTION = 0.3
REMEMBERED_KEYS = 65_536
_DOUBT = 10  # keys that must be measured before they outweigh the base


class Reuse:
    """How often each key was asked for, counted in one process. Counts are halved from time to time (TinyLFU's ageing).

    So it follows what is asked now, and never holds more than a fixed number of keys.
    """

    def __init__(self, keys: int = REMEMBERED_KEYS) -> None:
        self._keys = keys
        self._asks: dict[str, int] = {}
        self._repeated = 0
        self._lock = Lock()

    def asked(self, key: str) -> None:
        """Count one."""
        with self._lock:
            if key not in self._asks and len(self._asks) >= self._keys:
                self._age()
            self._asks[key] = self._asks.get(key, 0) + 1
            self._repeated += self._asks[key] == 2

    def repeats(self, key: str) -> int:
        """How often it was asked for before this time."""
        with self._lock:
            return max(0, self._asks.get(key, 0) - 1)

    @property
    def share(self) -> float:
        """The share of the other keys that were asked for again, drawn towards 0.5 while there are few."""
        with self._lock:
            return (self._repeated + _DOUBT * BASE) / (max(0, len(self._asks) - 1) + _DOUBT)

    def _age(self) -> None:
        """Halve every count; keys that were asked for once are forgotten, and if none were, the oldest quarter."""
        kept = {key: asks // 2 for key, asks in self._asks.items() if asks > 1}
        if len(kept) >= self._keys:
            kept = dict(list(kept.items())[-(self._keys * 3 // 4) :])
        self._asks = kept
        self._repeated = sum(asks > 1 for asks in kept.values())


def importance(
    data: Any, *, now: datetime, repeats: int = 0, prior: float = BASE, earlier: Iterable[str] = ()
) -> float:
    """How likely an entry is to be asked for again, in [0, 1]. `earlier` are questions before the one it answers."""
    value = (prior + repeats) / (1 + repeats)
    if isinstance(data, Mapping):
        value += _recency(data.get("updated_at"), now) + _confidence(data.get("confidence"))
    return min(1.0, max(0.0, value + _find_mentioned(data, earlier)))


def starting_tier(importance: float, threshold: float) -> MemoryTier:
    """RAM from the threshold on, the fast disk from half of it, else the reliable one (A43)."""
    if importance >= threshold:
        return MemoryTier.RAM
    return MemoryTier.NVME_RAID0 if importance >= threshold / 2 else MemoryTier.RAID1


def _recency(updated_at: object, now: datetime) -> float:
    """A time without a zone is taken as UTC; what is no time says nothing."""
    if isinstance(updated_at, str):
        updated_at = parse_moment(updated_at)
    if not isinstance(updated_at, datetime):
        return 0.0
    aware = updated_at if updated_at.tzinfo is not None else updated_at.replace(tzinfo=UTC)
    days = (now - aware).total_seconds() / 86_400
    return next((bonus for limit, bonus in RECENCY if days < limit), 0.0)


def _confidence(confidence: object) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return 0.0
    return next((bonus for limit, bonus in CONFIDENCE if confidence > limit), 0.0)


def _find_mentioned(data: Any, earlier: Iterable[str]) -> float:
    questions = [question.lower() for question in earlier if question.strip()]
    if not questions:
        return 0.0
    body = to_json(data)
    text = (str(data) if body is None else body.decode()).lower()
    return RECENT_QUESTION if any(question in text for question in questions) else 0.0


# What the tiers did and hold, for telemetry: hit rate and bytes of each.


@dataclass(frozen=True)
class TierReport:
    """One tier. Bytes and entries are what it holds now, for all processes; the counts are of this process."""

    tier: str
    entries: int
    bytes: int
    max_bytes: int | None
    asked: int
    hits: int
    hit_rate: float
    stored: int = 0
    evicted: int = 0
    damaged: int = 0
    failed: int = 0


@dataclass(frozen=True)
class CacheReport:
    """All tiers, fastest first. `hit_rate` is the share of look-ups that the store did not have to answer."""

    tiers: tuple[TierReport, ...]
    asked: int
    hits: int
    hit_rate: float

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def tier_report(
    tier: MemoryTier, counts: Counts, entries: int = 0, held: int = 0, limit: int | None = None
) -> TierReport:
    """The report of a tier from what it counted."""
    return TierReport(
        tier.name, entries, held, limit, counts.asked, counts.hits, rate(counts.hits, counts.asked), counts.stored,
        counts.evicted, counts.damaged, counts.failed,
    )  # fmt: skip


def rate(part: int, whole: int) -> float:
    """A share, 0 of nothing."""
    return part / whole if whole else 0.0


# The tiered cache: RAM, then the fast disk, then the reliable disk, then the function that computes the value.


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
        """How likely the key is to be asked for again, from what was measured; see `hades.cache.tiers`."""
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
