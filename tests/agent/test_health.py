"""The health file: what a container without a port is asked through."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent import health
from agent.health import Health, Report, judge
from tests.agent.simulated import Clock

WELL = Report(
    pid=1, state="healthy", interval_seconds=15, last_ok_monotonic=1000, pulse_due=1015, observer_due=1100
)  # fmt: skip


def test_an_agent_whose_beats_are_answered_is_healthy() -> None:
    verdict = judge(WELL, monotonic=1010, alive=True)
    assert verdict.healthy
    assert verdict.line.startswith("healthy")


@pytest.mark.parametrize(
    ("report", "monotonic", "alive", "words"),
    [
        (None, 1010, False, "not running"),
        (WELL, 1010, False, "process 1 is gone"),
        (replace(WELL, state="parked", code="node_disabled", error="403"), 1010, True, "parked (node_disabled): 403"),
        (WELL, 1046, True, "46 s old"),
        (
            replace(WELL, state="retrying", code="unreachable", error="dns", pulse_due=1100),
            1050,
            True,
            "unreachable: dns",
        ),
        (replace(WELL, interval_seconds=600), 1080, True, "the beat loop hangs"),
        (replace(WELL, last_ok_monotonic=None), 1010, True, "starting"),
    ],
)
def test_what_is_not_healthy_says_why(report: Report | None, monotonic: float, alive: bool, words: str) -> None:
    """Field case 85."""
    verdict = judge(report, monotonic=monotonic, alive=alive)
    assert not verdict.healthy
    assert words in verdict.line


@pytest.mark.parametrize(
    ("report", "monotonic", "words"),
    [
        (replace(WELL, state="retrying", code="unavailable", error="503"), 1020, "retrying (unavailable: 503)"),
        (replace(WELL, observer_error="413"), 1010, "facts cannot be told: 413"),
        (replace(WELL, observer_due=900), 1010, "takes too long"),
        (replace(WELL, worker_due=900), 1010, "the loop that works hangs"),
    ],
)
def test_an_agent_that_beats_but_is_not_well_is_degraded(report: Report, monotonic: float, words: str) -> None:
    verdict = judge(report, monotonic=monotonic, alive=True)
    assert verdict.healthy
    assert words in verdict.line


def test_what_the_loops_tell_is_what_another_process_reads(tmp_path: Path) -> None:
    clock = Clock()
    told = Health(tmp_path, clock, node_id="n", boot_id="b")
    told.answered(timedelta(seconds=15), timedelta(seconds=14))
    report = health.read(tmp_path)
    assert report == told.report
    assert report is not None
    assert report.pid == os.getpid()
    assert report.pulse_due == clock.at + 14


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1, "unknown": 2}', b"\xff"])
def test_a_file_that_cannot_be_read_is_not_running(tmp_path: Path, content: bytes) -> None:
    (tmp_path / health.FILE).write_bytes(content)
    assert not health.of_folder(tmp_path).healthy


def test_a_full_tmp_does_not_stop_a_beat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Health(tmp_path, Clock())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent.atomic.write", full)
    told.answered(timedelta(seconds=15), timedelta(seconds=14))
    assert told.report.state == "healthy"


def test_a_loop_long_past_its_word_hangs(tmp_path: Path) -> None:
    """Field case 40: the watchdog's question."""
    clock = Clock()
    told = Health(tmp_path, clock)
    told.pulse_due_in(timedelta(seconds=15))
    clock.pass_(timedelta(seconds=70))
    assert not told.hangs()
    clock.pass_(timedelta(seconds=6))
    assert told.hangs()


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    target = tmp_path / "real"
    target.mkdir()
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(PermissionError):
        health.make_folder(tmp_path / "link")
    health.make_folder(tmp_path / "own")
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_healthy_agent_names_the_job_that_runs() -> None:
    report = replace(WELL, worker_due=1060, job_id="j-1", job_phase="fetch", job_percent=42)
    assert judge(report, monotonic=1010, alive=True).line.endswith("; job j-1: fetch, 42 %")


def test_progress_of_a_job_is_written_only_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Health(tmp_path, Clock())
    told.job("j-1", "fetch", 42)
    monkeypatch.setattr("agent.atomic.write", None)
    told.job("j-1", "fetch", 42)
