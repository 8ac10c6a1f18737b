"""How loaded the agent finds its server to be, from one sample to the next."""

import errno
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
import pytest

from agent import wire
from agent.facts import Volume
from agent.gpus import Gpus
from agent.telemetry import Sampler
from agent.wire import Reading
from tests.agent.trees import Tree

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MIB = 2**20


@pytest.fixture
def gpus() -> Iterator[Gpus]:
    opened = Gpus()
    yield opened
    opened.close()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_sample_of_this_very_machine_survives_the_wire_unchanged(gpus: Gpus, tmp_path: Path) -> None:
    sampler = Sampler([Volume("state", tmp_path)], gpus)

    sample = sampler.sample(NOW)

    assert msgspec.json.decode(wire.encode(sample), type=wire.Telemetry) == sample
    assert sample.at == NOW
    assert sample.host.load_1m.value is not None
    assert [volume.name for volume in sample.volumes] == ["state"]


def test_memory_is_the_hosts_where_no_limit_is_set(gpus: Gpus, tree: Tree) -> None:
    tree.v2()
    tree.files("/sys/fs/cgroup", memory_max="max", memory_current=5 * MIB)

    host = Sampler([], gpus, tree.root).sample(NOW).host

    # The machine lives on between the two looks.
    assert host.memory_used_bytes.value == pytest.approx(psutil.virtual_memory().used, rel=0.5)
    assert host.memory_available_bytes.value == pytest.approx(psutil.virtual_memory().available, rel=0.5)


def test_memory_is_the_containers_where_a_limit_is_set(gpus: Gpus, tree: Tree) -> None:
    """Field case 57."""
    tree.v2()
    tree.files("/sys/fs/cgroup", memory_max=100 * MIB, memory_current=70 * MIB)
    tree.files("/sys/fs/cgroup", memory_stat=f"anon {40 * MIB}\ninactive_file {30 * MIB}\nactive_file 1")

    host = Sampler([], gpus, tree.root).sample(NOW).host

    assert host.memory_used_bytes == Reading(value=40 * MIB)
    assert host.memory_available_bytes == Reading(value=60 * MIB)


def test_memory_is_that_of_the_group_whose_limit_is_tightest(gpus: Gpus, tree: Tree) -> None:
    tree.v1("/a/b")
    for group, limit, usage in (("/a", 100 * MIB, 90 * MIB), ("/a/b", 200 * MIB, 10 * MIB)):
        tree.files(f"/sys/fs/cgroup/memory{group}", memory_limit_in_bytes=limit, memory_usage_in_bytes=usage)
        tree.files(f"/sys/fs/cgroup/memory{group}", memory_stat="total_inactive_file 0")

    host = Sampler([], gpus, tree.root).sample(NOW).host

    assert (host.memory_used_bytes, host.memory_available_bytes) == (Reading(value=90 * MIB), Reading(value=10 * MIB))


def test_a_group_that_does_not_tell_its_use_gives_a_reason(gpus: Gpus, tree: Tree) -> None:
    tree.v2()
    tree.files("/sys/fs/cgroup", memory_max=100 * MIB)

    host = Sampler([], gpus, tree.root).sample(NOW).host

    assert host.memory_used_bytes == host.memory_available_bytes == Reading(reason="error", code=errno.ENOENT)


@pytest.mark.parametrize("version", [1, 2])
def test_under_a_quota_the_processors_are_as_busy_as_the_quota_is_used_up(gpus: Gpus, tree: Tree, version: int) -> None:
    clock = Clock()
    if version == 2:
        tree.v2()
        tree.files("/sys/fs/cgroup", cpu_max="50000 100000", cpu_stat="usage_usec 7000000\nuser_usec 1")
    else:
        tree.v1()
        tree.files("/sys/fs/cgroup/cpu,cpuacct", cpu_cfs_quota_us=50000, cpu_cfs_period_us=100000)
        tree.write("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "7000000000\n")
    sampler = Sampler([], gpus, tree.root, clock=clock)

    clock.now += 20  # of which half a processor may use 10 s
    if version == 2:
        tree.files("/sys/fs/cgroup", cpu_stat="usage_usec 9500000\nuser_usec 1")
    else:
        tree.write("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "9500000000\n")

    assert sampler.sample(NOW).host.cpu_percent == Reading(value=25.0)


def test_the_processors_are_measured_since_the_sample_before(
    gpus: Gpus, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = [[cpu(10, 90)], [cpu(15, 95)], [cpu(24, 96)]]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: counters.pop(0))
    sampler = Sampler([], gpus, tree.root)

    assert [sampler.sample(NOW).host.cpu_percent.value for _ in range(2)] == [50.0, 90.0]


def test_only_the_processors_that_may_be_used_are_measured(
    gpus: Gpus, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = [[cpu(0, 0)] * 4, [cpu(100, 0), cpu(30, 70), cpu(10, 90), cpu(100, 0)]]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: counters.pop(0))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 2})
    sampler = Sampler([], gpus, tree.root)

    assert sampler.sample(NOW).host.cpu_percent == Reading(value=20.0)


def test_waiting_for_a_disk_is_no_work_and_guests_are_not_counted_twice(
    gpus: Gpus, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = [[cpu(0, 0)], [cpu(user=40, idle=40, iowait=20, guest=40)]]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: counters.pop(0))
    sampler = Sampler([], gpus, tree.root)

    assert sampler.sample(NOW).host.cpu_percent == Reading(value=40.0)


def test_two_samples_in_one_instant_measure_nothing(gpus: Gpus, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = [cpu(10, 90)]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: counters)

    assert Sampler([], gpus, tree.root).sample(NOW).host.cpu_percent == Reading(reason="unsupported")


def test_counters_that_cannot_be_read_are_a_reason(gpus: Gpus, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(percpu: bool) -> object:
        raise PermissionError(errno.EACCES, "no /proc/stat for you")

    sampler = Sampler([], gpus, tree.root)
    monkeypatch.setattr(psutil, "cpu_times", unreadable)

    assert sampler.sample(NOW).host.cpu_percent.reason == "error"


def test_a_volume_that_went_away_is_a_reason_and_the_others_are_told(gpus: Gpus, tmp_path: Path) -> None:
    sampler = Sampler([Volume("state", tmp_path), Volume("artifacts", tmp_path / "missing")], gpus)

    state, artifacts = sampler.sample(NOW).volumes

    assert state.free_bytes.value is not None
    assert artifacts.free_bytes == Reading(reason="error", code=errno.ENOENT)


def cpu(user: float, idle: float, iowait: float = 0, guest: float = 0) -> object:
    """Counters as psutil gives them on Linux."""
    times = psutil.cpu_times()
    fields = dict.fromkeys(times._fields, 0.0) | {"user": user, "idle": idle, "iowait": iowait, "guest": guest}
    return type(times)(**fields)
