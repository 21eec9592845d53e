"""Look-up order, importance, place, report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from hades.cache.stores import MISS, Counts, DiskCache, LRUCache, MemoryTier, TierHit, to_json
from hades.files import hold_lock, write_whole
from hades.ports.services import utc_now
from hades.settings.load import load_settings, override
from hades.settings.tree import CacheSettings
from hades.text.dates import parse_moment

# Where the tiers of a graph lie. A small file counts the times that something was forgotten; its
# number is part of every key, so that what was stored before is never found again, whichever
# process holds it.


@dataclass(frozen=True)
class CachePlace:
    """The folders of the two tiers on disk, and the file that counts acts of forgetting."""

    nvme: Path
    reliable: Path
    generation_file: Path

    @classmethod
    def under(cls, home: Path, settings: CacheSettings | None = None) -> CachePlace:
        """The folders that the settings name, else those under the home."""
        chosen = settings or CacheSettings.model_construct()
        folder = home / "cache"
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
        """Make all that is kept unreachable in every process, then delete it from disk; how many
        entries went.

        In this order: whoever stores an answer meanwhile looks at the number afterwards and takes
        it back.
        """
        with hold_lock(self.generation_file.with_suffix(".lock")):
            write_whole(self.generation_file, str(self.generation() + 1))

        gone = 0
        for folder in (self.nvme, self.reliable):
            if folder.is_dir():
                tier = DiskCache(folder)
                gone += tier.clear()
                tier.close()

        return gone


# Where an entry starts: what the caller says or BASE, and the terms of requirement A44. There is no
# term for length: scoring holds length against a path.
BASE = 0.5
RECENCY = ((1, 0.3), (7, 0.2), (30, 0.1))  # days, bonus
CONFIDENCE = ((0.8, 0.2), (0.5, 0.1))  # above, bonus
RECENT_QUESTION = 0.3


def importance(
    data: Any,
    *,
    now: datetime,
    prior: float = BASE,
    earlier: Iterable[str] = (),
) -> float:
    """How much an entry is worth keeping near, in [0, 1]. `earlier` are questions before the one it
    answers.
    """
    value = prior
    if isinstance(data, Mapping):
        value += _recency(data.get("updated_at"), now) + _confidence(data.get("confidence"))

    return min(1.0, max(0.0, value + _find_mentioned(data, earlier)))


def starting_tier(importance: float, threshold: float) -> MemoryTier:
    """RAM from the threshold on, the fast disk from half of it, else the reliable one (A43)."""
    if importance >= threshold:
        return MemoryTier.RAM
    if importance >= threshold / 2:
        return MemoryTier.NVME_RAID0

    return MemoryTier.RAID1


def _recency(updated_at: object, now: datetime) -> float:
    """A time without a zone is taken as UTC; what is no time says nothing."""
    if isinstance(updated_at, str):
        updated_at = parse_moment(updated_at)
    if not isinstance(updated_at, datetime):
        return 0.0

    if updated_at.tzinfo is not None:
        aware = updated_at
    else:
        aware = updated_at.replace(tzinfo=UTC)

    days = (now - aware).total_seconds() / 86_400
    return next((bonus for limit, bonus in RECENCY if days < limit), 0.0)


def _confidence(confidence: object) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return 0.0
    return next((bonus for limit, bonus in CONFIDENCE if confidence > limit), 0.0)


def _find_mentioned(value: Any, earlier: Iterable[str]) -> float:
    questions = []
    for question in earlier:
        if question.strip():
            questions.append(question.lower())

    if not questions:
        return 0.0

    body = to_json(value)
    text = (str(value) if body is None else body.decode()).lower()
    if any(question in text for question in questions):
        return RECENT_QUESTION

    return 0.0


@dataclass
class TierReport(Counts):
    """One tier. Bytes and entries are what it holds now, for all processes; the counts are of this
    process.
    """

    tier: str = ""
    entries: int = 0
    bytes: int = 0
    max_bytes: int | None = None


@dataclass
class CacheReport(Counts):
    """All tiers, fastest first. `hit_rate` is the share of look-ups that the store did not have to
    answer.
    """

    tiers: tuple[TierReport, ...] = ()


logger = logging.getLogger(__name__)
Compute = Callable[[], Any]
Context = Mapping[str, Any]  # "recent_queries": the last questions, the present one last


class TieredMemoryManager:
    """Looks values up from the fastest tier to the slowest and keeps them where their importance
    says.

    `config` holds any of the keys of the section `cache:`; what it leaves out has its default.
    Folders that it does not name lie under `home`, by default HADES_HOME. Without `uses_disk`
    entries stay in RAM: a read-only service writes nothing.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | CacheSettings | None = None,
        *,
        home: Path | None = None,
        uses_disk: bool = True,
    ) -> None:
        if not isinstance(config, CacheSettings):
            config = override(CacheSettings(), config or {}, "the cache")

        self.config = config
        self.place = CachePlace.under(load_settings().home if home is None else home, self.config)
        self.ram_cache = LRUCache(self.config.ram_cache_size_mb, on_evict=self._demote)
        self.nvme_cache = DiskCache(self.place.nvme, self.config.nvme_cache_size_gb)
        self.reliable_store = DiskCache(
            self.place.reliable,
            self.config.reliable_store_size_gb,
            durable=True,
        )
        disks = {
            MemoryTier.NVME_RAID0: self.nvme_cache,
            MemoryTier.RAID1: self.reliable_store,
        }
        self._disks = disks if uses_disk else {}
        self._tiers: dict[MemoryTier, LRUCache | DiskCache] = {
            MemoryTier.RAM: self.ram_cache,
            **self._disks,
        }
        self._generation = self.place.generation()
        self._store = Counts()

    def get_or_compute(
        self,
        key: str,
        compute: Compute,
        *,
        importance: Callable[[Any], float] | None = None,
        context: Context | None = None,
        keep: Callable[[Any], bool] = lambda value: True,
    ) -> TierHit:
        """What a tier holds, else what `compute` returns, kept if `keep` agrees; its errors are the
        caller's.
        """
        hit = self.look_up(key)
        if hit is not None:
            return hit

        generation = self._generation
        self._store.asked += 1
        value = compute()
        self._store.hits += value is not MISS

        if keep(value):
            prior = None if importance is None else importance(value)
            self._put(key, value, prior, context, generation)

        return TierHit(value, MemoryTier.RAID5)

    def get(
        self,
        key: str,
        context: Context | None = None,
        *,
        default: Any = None,
        fetch: Compute | None = None,
    ) -> Any:
        """What a tier holds; else what `fetch` reads from the store, which is kept; else `default`.

        A store that fails is logged and reads as `default` (A47). `MISS` as default, or as what
        `fetch` returns for a thing that is not there, is told apart from every stored value.
        """
        try:
            hit = self.get_or_compute(
                key,
                fetch or (lambda: MISS),
                context=context,
                keep=lambda value: value is not MISS,
            )
        except Exception as error:  # whatever the caller's database raises
            logger.warning(
                "the store could not be asked for %s: %s",
                key,
                error,
            )
            return default

        return default if hit.value is MISS else hit.value

    def put(
        self,
        key: str,
        value: Any,
        importance: float | None = None,
    ) -> bool:
        """Keep a value in the tier of its importance, or the next lower one that can hold it;
        whether one could.

        Other tiers let go of the key. An importance that is given takes the place of the base.
        """
        self._notice_forgetting()
        return self._put(
            key,
            value,
            importance,
            None,
            self._generation,
        )

    def look_up(self, key: str) -> TierHit | None:
        """What a tier holds, and which; an entry that is used often moves a tier up. None when none
        holds it.
        """
        self._notice_forgetting()
        value = self.ram_cache.get(key, MISS)

        if value is not MISS:
            return TierHit(value, MemoryTier.RAM)

        for tier, disk in self._disks.items():
            entry = disk.read(key)
            if entry is not None:
                if entry.access_count >= self.config.promotion_threshold:
                    self._store_in(
                        MemoryTier(tier - 1),
                        key,
                        entry.value,
                        entry.metadata,
                    )
                return TierHit(entry.value, tier)

        return None

    def remove(self, key: str) -> bool:
        """Let go of a key in every tier; whether one held it."""
        return sum(cache.remove(key) for cache in self._tiers.values()) > 0

    def report(self) -> CacheReport:
        """Hit rate and bytes of every tier; of the store, how often it had to compute."""
        tiers = [
            TierReport(
                **vars(cache.counts),
                tier=tier.name,
                entries=len(cache),
                bytes=cache.current_bytes,
                max_bytes=cache.max_bytes,
            )
            for tier, cache in self._tiers.items()
        ]
        graph = TierReport(**vars(self._store), tier=MemoryTier.RAID5.name)
        totals = {name: sum(map(attrgetter(name), tiers)) for name in vars(self._store)}
        totals["asked"] = tiers[0].asked
        return CacheReport(**totals, tiers=(*tiers, graph))

    def close(self) -> None:
        """Put what is in memory on the fast disk, so that the next process starts warm, and give
        back the files.
        """
        for key, value in self.ram_cache.items():
            self._demote(key, value)

        self.ram_cache.clear()
        self.nvme_cache.close()
        self.reliable_store.close()

    def _put(
        self,
        key: str,
        value: Any,
        prior: float | None,
        context: Context | None,
        generation: int,
    ) -> bool:
        """Store, then look whether something was forgotten since `generation`; if so the value is
        taken back.
        """
        earlier = list((context or {}).get("recent_queries", ()))[:-1]
        worth = importance(
            value,
            now=utc_now(),
            prior=BASE if prior is None else prior,
            earlier=earlier,
        )
        first = MemoryTier.RAM

        if self._disks:
            first = starting_tier(worth, self.config.importance_threshold)

        is_kept = False
        for tier, cache in self._tiers.items():
            if tier >= first and not is_kept:
                is_kept = self._store_in(
                    tier,
                    key,
                    value,
                    {"importance": round(worth, 3)},
                )
            else:
                cache.remove(key)

        if is_kept and self.place.generation() != generation:
            self.remove(key)
            return False

        return is_kept

    def _store_in(
        self,
        tier: MemoryTier,
        key: str,
        value: Any,
        metadata: Mapping[str, Any],
    ) -> bool:
        if tier is MemoryTier.RAM:
            return self.ram_cache.put(key, value)
        return self._disks[tier].put(key, value, metadata)

    def _demote(self, key: str, value: Any) -> None:
        """What leaves memory goes to the fast disk, unless it is there or something was forgotten
        since it came.
        """
        if not self._disks or self.place.generation() != self._generation or key in self.nvme_cache:
            return

        self.nvme_cache.put(key, value)
        if self.place.generation() != self._generation:
            self.nvme_cache.remove(key)

    def _notice_forgetting(self) -> None:
        """RAM holds entries of one generation only: it is cleared after a document was
        forgotten.
        """
        current = self.place.generation()
        if current != self._generation:
            self.ram_cache.clear()
            self._generation = current
