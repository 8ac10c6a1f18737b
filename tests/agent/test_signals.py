"""How the real agent process ends when it is told to, however often and however fast."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import protocol
from tests.agent.processes import Agent, environment, joined
from tests.agent.scripted import ControlPlane
from tests.parts.ports import until

Start = Callable[[dict[str, str]], Agent]
ROUNDS = 10
SECOND_IN_THE_MIDDLE = """
import os, signal, sys, threading
notify_all = threading.Condition.notify_all
def interrupted(self):
    if threading.get_ident() == threading.main_thread().ident:
        os.kill(os.getpid(), signal.SIGINT)
    notify_all(self)
threading.Condition.notify_all = interrupted
from agent.__main__ import main
sys.exit(main(["run"]))
"""
BEFORE_IT_IS_LOADED = """
import importlib, os, signal, sys
load = importlib.import_module
def late(name):
    os.kill(os.getpid(), signal.{signal})
    return load(name)
importlib.import_module = late
from agent.__main__ import main
sys.exit(main(["run"]))
"""


@pytest.mark.parametrize("pair", [(signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGINT)])
def test_two_signals_back_to_back_end_it_like_one(
    plane: ControlPlane, start: Start, tmp_path: Path, pair: tuple[signal.Signals, signal.Signals]
) -> None:
    agents = []
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        joined(folder)
        agents.append(start(environment(folder, plane.url)))
        plane.wait_for(protocol.FACTS, number + 1)
        for one in pair:
            agents[-1].process.send_signal(one)
    assert [agent.wait() for agent in agents] == [0] * ROUNDS
    reasons = {request.json["reason"] for request in plane.asked(protocol.GOODBYE)}
    assert len(plane.asked(protocol.GOODBYE)) == ROUNDS
    assert reasons <= {f"stopped by {one.name}" for one in pair}


def test_a_second_signal_in_the_middle_of_the_first_ones_work_ends_it_too(plane: ControlPlane, tmp_path: Path) -> None:
    """The worst instant, made certain: while the main thread holds the lock of the event that stops the loops."""
    joined(tmp_path)
    agent = subprocess.Popen([sys.executable, "-c", SECOND_IN_THE_MIDDLE], env=environment(tmp_path, plane.url))
    try:
        plane.wait_for(protocol.FACTS)
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(15) == 0
    finally:
        agent.kill()
        agent.wait(10)


def test_a_signal_during_the_start_is_not_lost(plane: ControlPlane, start: Start, tmp_path: Path) -> None:
    """What stops it may come before its loops run."""
    joined(tmp_path)
    agent = start(environment(tmp_path, plane.url))
    until(lambda: "agent starts" in agent.output, "its first line")
    assert agent.stop() == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_before_its_parts_are_loaded_ends_it_like_any_other(
    plane: ControlPlane, tmp_path: Path, name: str
) -> None:
    joined(tmp_path)
    code = BEFORE_IT_IS_LOADED.format(signal=name)
    agent = subprocess.Popen([sys.executable, "-c", code], env=environment(tmp_path, plane.url))
    try:
        assert agent.wait(60) == 0
    finally:
        agent.kill()
        agent.wait(10)
