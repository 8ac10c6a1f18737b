"""Looks at a stack from outside while something happens to it: what /readyz says, and what acts were promised."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import pairwise
from types import TracebackType
from typing import Any

from tests.deploy import engine
from tests.deploy.engine import docker
from tests.deploy.parts import Stack
from tests.parts.ports import until

EVERY = 0.2
OF_THE_PROXY = "web server"
"""Words of what the proxy itself answers, and never the application."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer of /readyz; ``told`` is None where nobody answered."""

    at: float
    told: dict[str, Any] | None

    @property
    def ready(self) -> bool:
        """Whether it said so."""
        return self.told is not None and bool(self.told["ready"])

    def is_ill(self, check: str) -> bool:
        """Whether this check is told to fail."""
        return self.told is not None and not self.told["checks"][check]["ok"]


@dataclass
class Watch:
    """Asks /readyz and makes enrollment tokens, over and over, until it is left."""

    stack: Stack
    seen: list[Seen] = field(default_factory=list)
    promised: list[str] = field(default_factory=list)
    """The ids of tokens that were answered with 201."""
    done_at: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What was answered instead, or how the connection ended."""

    def __enter__(self) -> "Watch":
        self.started = time.time()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._look, self._act)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.seen.append(Seen(time.time(), self.stack.site.ready()))

    def _act(self) -> None:
        headers = {"X-ModelForge-Admin-Token": self.stack.site.admin_token}
        while not self._over.wait(EVERY):
            body = {"expires_in_seconds": 60, "display_name": "promised"}
            try:
                answer = self.stack.site.ask("POST", "/api/v1/admin/node-enrollments", body, headers=headers)
            except (OSError, HTTPException) as fault:
                self.refused.append(repr(fault))
                continue
            if answer.status == 201:
                self.promised.append(answer.json["id"])
                self.done_at.append(time.time())
            else:
                self.refused.append(f"{answer.status} {answer.body[:200]!r}")

    def pause(self) -> float:
        """The longest time in seconds in which no act went through."""
        return max(later - earlier for earlier, later in pairwise([self.started, *self.done_at, time.time()]))

    def complaints(self) -> list[str]:
        """Refusals that came from the application; what the proxy says while no web server is there is none."""
        return [
            told for told in self.refused if not (told.startswith(("Remote", "Connection")) or OF_THE_PROXY in told)
        ]

    def between(self, start: float, end: float) -> list[Seen]:
        """What was asked and answered wholly within that time."""
        return [seen for seen in self.seen if start + 1 <= seen.at <= end]

    def kept(self) -> set[str]:
        """Which of the promised tokens the history knows."""
        return set(self.promised) & created_tokens(self.stack)


def created_tokens(stack: Stack) -> set[str]:
    """The ids of all tokens whose making stands in the history."""
    answer = stack.site.ask(
        "GET",
        "/api/v1/audit-events?format=ndjson&type=enrollment_token.created",
        headers={"X-ModelForge-Admin-Token": stack.site.admin_token},
    )
    return {json.loads(line)["about_id"] for line in answer.body.splitlines()}


def crash(container: str) -> None:
    """End a container's first process as a crash does: the engine's own ``kill`` would count as the operator's wish."""
    pid = engine.inspect(container)["State"]["Pid"]
    code = f"import os, signal; os.kill({pid}, signal.SIGKILL)"
    docker("run", "--rm", "--pid", "host", "--user", "0", "python:3.13-slim-trixie", "python", "-c", code)


def started_again(container: str, before: str) -> None:
    """Wait until the engine started it anew."""

    def seen() -> bool:
        state = engine.inspect(container)["State"]
        return bool(state["Running"]) and state["StartedAt"] != before

    until(seen, "the engine starts it again", within=60, every=0.1)


def started_at(container: str) -> str:
    """When it last started."""
    return str(engine.inspect(container)["State"]["StartedAt"])
