"""How the agent lives with the NVIDIA driver: absent, broken, hanging, coming back; and that it leaks nothing."""

import shutil
from pathlib import Path

import pytest

from agent.wire import Reading
from tests.nvml import standin
from tests.nvml.asked import Asked, asked


def states(gpus: Asked) -> tuple[str, str]:
    return gpus.facts()[0].state, gpus.telemetry()[0]


def test_no_driver_library_is_absent_and_no_error(tmp_path: Path) -> None:
    """Field case 56."""
    with asked(tmp_path, library=False) as none:
        runtime, facts = none.facts()

        assert (runtime.state, runtime.code, facts) == ("absent", 12, [])
        assert "libnvidia-ml.so.1 not found" in runtime.message
        assert none.telemetry() == ("absent", [])


def test_a_driver_that_is_installed_later_is_noticed_after_the_long_pause(tmp_path: Path) -> None:
    """Field case 56."""
    with asked(tmp_path, library=False) as gpus:
        before = states(gpus)
        shutil.copy(standin.library() / "libnvidia-ml.so.1", tmp_path)
        gpus.advance(290)
        meanwhile = states(gpus)
        gpus.advance(11)

        assert (before, meanwhile) == (("absent", "absent"), ("absent", "absent"))
        assert states(gpus) == ("ready", "ready")


def test_a_library_that_is_no_library_is_told_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not an ELF file, but long enough to be looked at as one" * 10)
    with asked(tmp_path, library=False) as gpus:
        runtime, _ = gpus.facts()

    assert runtime.state == "failed"
    assert "libnvidia-ml.so.1" in runtime.message


def test_a_driver_and_library_mismatch_is_shown_with_its_code_and_remedy(tmp_path: Path) -> None:
    """Field case 48."""
    with asked(tmp_path, faults="nvmlInitWithFlags=18") as gpus:
        runtime, facts = gpus.facts()

        assert (runtime.state, runtime.code, facts) == ("failed", 18, [])
        assert "reboot the server" in runtime.message
        assert gpus.telemetry() == ("failed", [])


def test_a_driver_that_is_not_loaded_is_absent(tmp_path: Path) -> None:
    """Field case 56."""
    with asked(tmp_path, faults="nvmlInitWithFlags=9") as gpus:
        runtime, _ = gpus.facts()

    assert (runtime.state, runtime.code, runtime.message) == ("absent", 9, "the NVIDIA driver is not loaded")


def test_an_initialisation_that_fails_three_times_is_tried_again_with_a_growing_pause(tmp_path: Path) -> None:
    """Field case 49."""
    with asked(tmp_path, init_failures="3:17") as gpus:
        seen = []
        for pause in (0, 4, 1, 9, 1, 19, 1):
            gpus.advance(pause)
            seen.append((gpus.telemetry()[0], len(gpus.calls())))

    assert seen == [
        ("failed", 1),
        ("failed", 1),
        ("failed", 2),  # after 5 s
        ("failed", 2),
        ("failed", 3),  # after another 10 s
        ("failed", 3),
        ("ready", 4),  # after another 20 s
    ]


def test_the_pause_between_attempts_never_grows_beyond_five_minutes(tmp_path: Path) -> None:
    """Field case 49."""
    with asked(tmp_path, faults="nvmlInitWithFlags=999") as gpus:
        for _ in range(24):  # two hours
            gpus.advance(300)
            gpus.telemetry()
        attempts = len(gpus.calls())

    assert attempts == 24


def test_a_container_that_loses_the_driver_is_told_with_the_remedy(tmp_path: Path) -> None:
    """Field case 47."""
    with asked(tmp_path) as gpus:
        before = gpus.facts()[0].state
        gpus.set(broken_after=0)
        runtime, facts = gpus.facts()

        assert before == "ready"
        assert (runtime.state, runtime.code, facts) == ("failed", 999, [])
        assert "must be recreated" in runtime.message
        assert gpus.facts() == (runtime, [])


def test_when_no_device_answers_the_runtime_has_failed(tmp_path: Path) -> None:
    """Field case 47: the call that counts the devices may go on to work when the devices are out of reach."""
    with asked(tmp_path) as gpus:
        gpus.facts()
        gpus.set(faults="*@0=999,*@1=999")
        runtime, facts = gpus.facts()

        assert (runtime.state, runtime.code, facts) == ("failed", 999, [])
        assert gpus.calls() == ["init", "shutdown"]


def test_the_looks_of_a_library_that_stays_dead_say_the_same_each_time(tmp_path: Path) -> None:
    """Field case 47: what does not change is not published anew."""
    with asked(tmp_path, 1, faults="*@0=15") as gpus:
        looks = []
        for _ in range(20):
            looks.append(gpus.facts())
            gpus.advance(20)

        assert looks == [looks[0]] * 20
        assert (looks[0][0].state, looks[0][0].code) == ("failed", 15)
        assert gpus.calls().count("init") > 2


def test_a_driver_that_breaks_after_some_calls_is_shut_down(tmp_path: Path) -> None:
    """Field case 47."""
    with asked(tmp_path, broken_after=120) as gpus:
        seen = [gpus.telemetry()[0] for _ in range(10)]

        assert seen == sorted(seen, reverse=True)
        assert set(seen) == {"ready", "failed"}
        assert gpus.calls() == ["init", "shutdown"]


@pytest.mark.parametrize("code", [1, 9, 15, 999])
def test_a_library_that_died_is_shut_down_and_opened_again_after_a_pause(tmp_path: Path, code: int) -> None:
    """Field cases 47 and 50."""
    with asked(tmp_path) as gpus:
        descriptors = opened(gpus)
        gpus.set(faults=f"nvmlDeviceGetCount_v2={code}")
        broken = gpus.telemetry()
        gpus.set()
        too_soon = gpus.telemetry()[0]
        gpus.advance(5)
        after = gpus.telemetry()[0]

        assert broken[1] == []
        assert (broken[0], too_soon) == ("absent", "absent") if code == 9 else ("failed", "failed")
        assert after == "ready"
        assert gpus.calls() == ["init", "shutdown", "init"]
        assert opened(gpus) == descriptors


def test_a_lost_gpu_among_healthy_ones_has_the_library_opened_again_ever_more_rarely(tmp_path: Path) -> None:
    """Field cases 45 and 50."""
    with asked(tmp_path, 4, faults="*@3=15") as gpus:
        seen = set()
        for _ in range(360):  # an hour, a look every ten seconds
            seen.add(gpus.telemetry()[0])
            gpus.advance(10)
        attempts = gpus.calls().count("init")

    assert seen == {"ready"}
    assert 10 <= attempts <= 20


def test_a_gpu_that_is_denied_is_listed_and_nothing_is_opened_again_for_it(tmp_path: Path) -> None:
    with asked(tmp_path, 1, faults="*@0=4") as gpus:
        runtime, (gpu,) = gpus.facts()
        gpus.advance(600)
        gpus.telemetry()

        assert runtime.state == "ready"
        assert (gpu.key, gpu.uuid) == ("index:0", Reading(reason="denied", code=4))
        assert gpus.calls() == ["init"]


def test_a_gpu_that_comes_back_is_whole_after_the_library_was_opened_again(tmp_path: Path) -> None:
    with asked(tmp_path, 2, faults="*@1=15") as gpus:
        gpus.telemetry()
        gpus.set(faults="")
        gpus.advance(5)
        _, loads = gpus.telemetry()

        assert [load.temperature_celsius.value for load in loads] == [55.0, 55.0]
        assert gpus.calls() == ["init", "shutdown", "init"]


def test_a_close_gives_the_driver_everything_back(tmp_path: Path) -> None:
    with asked(tmp_path) as gpus:
        before = opened(gpus, look=False)
        gpus.telemetry()
        gpus.say("close")

        assert gpus.calls() == ["init", "shutdown"]
        assert opened(gpus, look=False) == before


def test_ten_thousand_looks_initialise_once_and_leak_neither_descriptors_nor_memory(tmp_path: Path) -> None:
    """Field case 50."""
    with asked(tmp_path, 1) as gpus:
        gpus.say("cycles 200")
        before = gpus.say("process")
        seen = gpus.say("cycles 10000")
        after = gpus.say("process")

        assert seen == ["ready"]
        assert gpus.calls() == ["init"]
        assert after["descriptors"] == before["descriptors"]
        assert after["resident_kib"] - before["resident_kib"] < 1024


def opened(gpus: Asked, *, look: bool = True) -> int:
    """How many descriptors the process holds, after a look at the GPUs unless told otherwise."""
    if look:
        gpus.telemetry()
    return int(gpus.say("process")["descriptors"])
