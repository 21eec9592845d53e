"""One door to all tiers: order, promotion, demotion, forgetting (A39 to A43, A47, A49, X-08, X-09,
X-15).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.cache.stores import MISS, MemoryTier
from hades.cache.tiers import CachePlace, TieredMemoryManager
from hades.errors import HadesError, SettingsError, StoreUnavailable


def never() -> object:
    raise AssertionError("computed although a tier holds it")


@pytest.fixture
def manager(tmp_path):
    opened = TieredMemoryManager({"ram_cache_size_mb": 1}, home=tmp_path)
    yield opened
    opened.close()


def texts(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_partial_configuration_keeps_the_other_defaults(tmp_path):
    manager = TieredMemoryManager({"promotion_threshold": 2}, home=tmp_path)
    assert (manager.config.promotion_threshold, manager.config.ram_cache_size_mb) == (2, 8192)
    assert (manager.config.nvme_cache_size_gb, manager.config.importance_threshold) == (50, 0.7)
    assert manager.place.nvme == tmp_path / "cache" / "nvme"


@pytest.mark.parametrize(
    "config", [{"ram_cache": 1}, {"ram_cache_size_mb": 0}, {"promotion_threshold": "often"}]
)
def test_a_configuration_that_means_nothing_is_named(tmp_path, config):
    with pytest.raises(SettingsError, match=next(iter(config))):
        TieredMemoryManager(config, home=tmp_path)


@pytest.mark.parametrize("value", [None, [], {}, 0])
@pytest.mark.parametrize(
    ("importance", "tier"),
    [(0.9, MemoryTier.RAM), (0.5, MemoryTier.NVME_RAID0), (0.1, MemoryTier.RAID1)],
)
def test_an_empty_value_is_kept_like_any_other(manager, value, importance, tier):
    """In the tier that its importance says."""
    found = manager.get_or_compute("key", lambda: value, importance=lambda _: importance)
    assert (found.value, found.tier) == (value, MemoryTier.RAID5)
    again = manager.get_or_compute("key", never)
    assert (again.value, again.tier) == (value, tier)


@pytest.mark.parametrize(
    ("start", "importance"), [(MemoryTier.NVME_RAID0, 0.5), (MemoryTier.RAID1, 0.1)]
)
def test_the_fifth_access_moves_an_entry_one_tier_up(manager, start, importance):
    manager.put("key", [1], importance)
    tiers = [manager.look_up("key").tier for _ in range(5)]
    assert tiers == [start] * 4 + [MemoryTier(start - 1)]


def test_a_value_that_is_put_again_is_found_in_one_tier_only(manager):
    manager.put("key", "old", 0.5)
    manager.put("key", "new", 0.1)
    assert manager.get("key") == "new"
    manager.put("key", "newest", 0.9)
    assert manager.get("key") == "newest"
    assert ["key" in tier for tier in (manager.nvme_cache, manager.reliable_store)] == [
        False,
        False,
    ]


def test_what_memory_cannot_hold_goes_to_the_next_tier_that_can(manager):
    assert manager.put("big", "x" * 2_000_000, 0.9)
    assert manager.look_up("big").tier is MemoryTier.NVME_RAID0


def test_what_leaves_memory_goes_to_the_fast_disk(manager):
    for number in range(3):
        manager.put(f"key {number}", "x" * 400_000, 0.9)
    assert manager.look_up("key 0").tier is MemoryTier.NVME_RAID0
    assert manager.report().tiers[0].evicted == 1


def test_the_next_process_starts_warm(tmp_path):
    first = TieredMemoryManager(home=tmp_path)
    first.put("key", [1], 0.9)
    first.close()
    assert TieredMemoryManager(home=tmp_path).get_or_compute("key", never).value == [1]


def test_errors_of_computing_reach_the_caller_and_leave_nothing(manager):
    def fails() -> object:
        raise HadesError("no")

    with pytest.raises(HadesError, match="no"):
        manager.get_or_compute("key", fails)
    assert manager.get("key", default=MISS) is MISS


@pytest.mark.parametrize("error", [StoreUnavailable, ConnectionError, RuntimeError])
def test_a_store_that_fails_reads_as_a_miss_and_is_logged(manager, caplog, error):
    def fails() -> object:
        raise error("down")

    assert manager.get("entity:x", fetch=fails) is None
    assert "down" in caplog.text
    assert manager.get("entity:x", fetch=lambda: MISS, default="none") == "none"
    assert manager.get("entity:x", fetch=lambda: {"name": "x"}) == {"name": "x"}
    assert manager.get("entity:x", fetch=fails) == {"name": "x"}


def test_the_report_says_hit_rate_and_bytes_of_every_tier(manager):
    manager.put("a", "x" * 98, 0.9)
    manager.put("b", "x" * 48, 0.1)
    for key in ("a", "a", "b", "nobody"):
        manager.get(key)
    report = manager.report()
    by_tier = {tier.tier: tier for tier in report.tiers}
    assert [tier.tier for tier in report.tiers] == ["RAM", "NVME_RAID0", "RAID1", "RAID5"]
    assert (by_tier["RAM"].bytes, by_tier["RAM"].hits, by_tier["RAM"].hit_rate) == (100, 2, 0.5)
    assert (by_tier["RAID1"].bytes, by_tier["RAID1"].asked, by_tier["RAID1"].hits) == (50, 2, 1)
    assert (report.asked, report.hits, report.hit_rate) == (4, 3, 0.75)


@pytest.mark.parametrize("importance", [0.9, 0.5, 0.1])
def test_forgetting_reaches_every_tier_of_every_process(tmp_path, importance):
    mine, other = (TieredMemoryManager(home=tmp_path) for _ in range(2))
    for one in (mine, other):
        one.put("key", "secret", importance)
    CachePlace.under(tmp_path).forget_everything()
    assert mine.look_up("key") is other.look_up("key") is None
    for one in (mine, other):
        one.close()
    assert b"secret" not in texts(tmp_path)


def test_a_damaged_count_of_forgetting_finds_nothing_old(tmp_path):
    manager = TieredMemoryManager(home=tmp_path)
    manager.put("key", "secret", 0.9)
    manager.place.generation_file.parent.mkdir(parents=True, exist_ok=True)
    manager.place.generation_file.write_text("?")
    assert manager.look_up("key") is None
    assert manager.place.forget_everything() == 0
    assert manager.place.generation() == 0


def test_an_answer_that_was_being_computed_while_something_was_forgotten_is_not_kept(tmp_path):
    manager = TieredMemoryManager(home=tmp_path)

    def computes() -> str:
        CachePlace.under(tmp_path).forget_everything()
        return "secret"

    for importance in (0.9, 0.5, 0.1):
        assert (
            manager.get_or_compute(
                "key", computes, importance=lambda _, worth=importance: worth
            ).value
            == "secret"
        )
        assert manager.look_up("key") is None
    manager.close()
    assert b"secret" not in texts(tmp_path)


def test_memory_of_a_process_that_did_not_notice_does_not_come_back_to_disk(tmp_path):
    manager = TieredMemoryManager(home=tmp_path)
    manager.put("key", "secret", 0.9)
    CachePlace.under(tmp_path).forget_everything()
    manager.close()
    assert b"secret" not in texts(tmp_path)
