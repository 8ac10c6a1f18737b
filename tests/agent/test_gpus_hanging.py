"""A driver call that hangs costs the agent one deadline, and nothing else."""

import threading
from pathlib import Path

import pytest

from agent.gpus import Gpus
from tests.nvml.asked import asked

HANG = 3600


@pytest.mark.parametrize("function", ["nvmlInitWithFlags", "nvmlDeviceGetFanSpeed"])
def test_a_driver_call_that_hangs_costs_one_deadline_and_then_nothing(tmp_path: Path, function: str) -> None:
    """Field cases 36 and 50."""
    with asked(tmp_path, deadline=0.5, sleeps=f"{function}={HANG}") as gpus:
        first, first_took = gpus.telemetry(), gpus.took
        (runtime, facts), second_took = gpus.facts(), gpus.took
        attempts = gpus.calls().count("init")

    assert first == ("failed", [])
    assert 0.45 < first_took < 2
    assert (runtime.state, facts) == ("failed", [])
    assert "has not answered" in runtime.message
    assert second_took < 0.4
    assert attempts == 1  # no second call waits behind the one that hangs


def test_the_message_about_a_driver_that_hangs_grows_in_doubling_steps(tmp_path: Path) -> None:
    with asked(tmp_path, deadline=0.25, sleeps=f"nvmlInitWithFlags={HANG}") as gpus:
        gpus.telemetry()
        messages = []
        for _ in range(3):
            gpus.advance(20)
            messages.append(gpus.facts()[0].message)

    assert "not answered for 16 s" in messages[0]
    assert "not answered for 32 s" in messages[1]
    assert messages[2] == messages[1]


def test_a_driver_that_stops_hanging_is_used_again_without_a_second_initialisation(tmp_path: Path) -> None:
    """Field case 50."""
    with asked(tmp_path, deadline=0.2, sleeps=f"nvmlInitWithFlags={HANG}") as gpus:
        hanging = gpus.telemetry()[0]
        gpus.set(sleeps="")
        answers = (gpus.telemetry()[0] for _ in range(100_000))

        assert hanging == "failed"
        assert "ready" in answers
        assert gpus.calls() == ["init"]


def test_a_close_does_not_wait_for_a_driver_that_hangs(tmp_path: Path) -> None:
    with asked(tmp_path, deadline=0.2, sleeps=f"nvmlInitWithFlags={HANG}") as gpus:
        gpus.telemetry()
        gpus.say("close")

        assert gpus.took < 1


def test_without_a_thread_to_be_had_the_runtime_has_failed_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    gpus = Gpus()

    runtime, facts = gpus.facts()

    assert (runtime.state, facts, gpus.telemetry()) == ("failed", [], ("failed", []))
    assert "can't start new thread" in runtime.message
    gpus.close()
