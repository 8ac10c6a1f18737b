"""The limits that a container leaves of its host, read from fakes of the kernel's trees (field case 57)."""

from pathlib import Path

import psutil
import pytest

from agent import cgroups, facts
from agent.wire import Reading
from tests.agent.trees import Tree

GIB = 2**30


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def memory(tree: Tree) -> int | None:
    limit = cgroups.read(tree.root).memory
    return None if limit is None else limit.limit_bytes


def processors(tree: Tree) -> float | None:
    limit = cgroups.read(tree.root).cpu
    return None if limit is None else limit.processors


def test_the_host_and_the_limits_are_told_apart(tree: Tree) -> None:
    """Field case 57."""
    tree.v2()
    tree.files("/sys/fs/cgroup", memory_max=2 * GIB, cpu_max="50000 100000")

    host = facts.host("server01", tree.root)

    assert host.memory_visible_bytes == Reading(value=psutil.virtual_memory().total)
    assert host.memory_limit_bytes == Reading(value=2 * GIB)
    assert host.cpu_visible == Reading(value=psutil.cpu_count())
    assert host.cpu_limit == Reading(value=0.5)
    assert host.limits_source == "cgroup v2"


def test_no_limit_is_unsupported_and_not_the_hosts_size(tree: Tree) -> None:
    """Field case 57."""
    tree.v2()
    tree.files("/sys/fs/cgroup", memory_max="max", cpu_max="max 100000")

    host = facts.host("server01", tree.root)

    assert host.memory_limit_bytes == Reading(reason="unsupported")
    assert host.limits_source == "cgroup v2"
    assert (memory(tree), processors(tree)) == (None, None)


def test_without_any_cgroup_no_limit_is_invented(tree: Tree) -> None:
    host = facts.host("server01", tree.root)

    assert host.memory_limit_bytes == Reading(reason="unsupported")
    assert host.limits_source == ""


@pytest.mark.parametrize("tight", ["/a/b/c", "/a/b", "/a"])
def test_the_tightest_memory_limit_on_the_way_up_wins(tree: Tree, tight: str) -> None:
    tree.v2("/a/b/c")
    for group in ("/a", "/a/b", "/a/b/c"):
        tree.files(f"/sys/fs/cgroup{group}", memory_max=GIB if group == tight else 4 * GIB)

    assert memory(tree) == GIB


@pytest.mark.parametrize("tight", ["/a/b/c", "/a/b", "/a"])
def test_the_tightest_quota_on_the_way_up_wins(tree: Tree, tight: str) -> None:
    tree.v2("/a/b/c")
    for group in ("/a", "/a/b", "/a/b/c"):
        tree.files(f"/sys/fs/cgroup{group}", cpu_max="150000 100000" if group == tight else "8000000 1000000")

    assert processors(tree) == 1.5


def test_a_limit_of_another_group_is_not_ours(tree: Tree) -> None:
    tree.v2("/a/b")
    tree.files("/sys/fs/cgroup/a/other", memory_max=GIB)
    tree.files("/sys/fs/cgroup/a/b", memory_max="max")

    assert memory(tree) is None


def test_version_1_limits_are_read_in_their_own_trees(tree: Tree) -> None:
    tree.v1("/docker/1234")
    tree.files("/sys/fs/cgroup/memory/docker/1234", memory_limit_in_bytes=GIB)
    tree.files("/sys/fs/cgroup/cpu,cpuacct/docker/1234", cpu_cfs_quota_us=250000, cpu_cfs_period_us=100000)
    tree.files("/sys/fs/cgroup/cpuset/docker/1234", cpuset_cpus="0-3,8")

    limits = cgroups.read(tree.root)

    assert (memory(tree), processors(tree), limits.processors, limits.source) == (GIB, 2.5, 5, "cgroup v1")


def test_version_1_writes_no_limit_as_a_huge_or_negative_number(tree: Tree) -> None:
    tree.v1()
    tree.files("/sys/fs/cgroup/memory", memory_limit_in_bytes=9223372036854771712)
    tree.files("/sys/fs/cgroup/cpu,cpuacct", cpu_cfs_quota_us=-1, cpu_cfs_period_us=100000)

    assert (memory(tree), processors(tree), cgroups.read(tree.root).source) == (None, None, "cgroup v1")


def test_a_container_that_sees_only_its_own_part_of_the_tree_finds_its_limit(tree: Tree) -> None:
    """Docker's version 1 containers read the host's path of their group, but see the group mounted as the top."""
    tree.v1("/docker/1234", mounted="/docker/1234")
    tree.files("/sys/fs/cgroup/memory", memory_limit_in_bytes=GIB)

    assert memory(tree) == GIB


def test_a_group_outside_of_what_is_mounted_is_read_at_the_mount(tree: Tree) -> None:
    tree.v2("/../../system.slice")
    tree.files("/sys/fs/cgroup", memory_max=GIB)

    assert memory(tree) == GIB


def test_a_cpuset_smaller_than_the_host_is_a_limit(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 64)
    tree.v2()
    tree.write("/sys/fs/cgroup/cpuset.cpus.effective", "0\n")

    assert facts.host(None, tree.root).cpu_limit == Reading(value=1.0)


def test_an_affinity_smaller_than_the_host_is_a_limit(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})

    assert facts.host(None, tree.root).cpu_limit == Reading(value=3.0)


def test_an_affinity_to_all_processors_is_no_limit(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 3)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})

    assert facts.host(None, tree.root).cpu_limit == Reading(reason="unsupported")


@pytest.mark.parametrize("text", ["", "nonsense", "100000", "0 0", "-1 100000"])
def test_a_quota_in_no_known_shape_sets_no_limit(tree: Tree, text: str) -> None:
    tree.v2()
    tree.files("/sys/fs/cgroup", cpu_max=text)

    assert processors(tree) is None
