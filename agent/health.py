"""How the agent is, told through a small file in memory, so that a container without a port can still be asked."""

import json
import logging
import os
import stat
import sys
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Lock

from agent import atomic
from agent.clock import Clock, SystemClock

log = logging.getLogger(__name__)

FILE = "health.json"
STALE_AFTER_INTERVALS = 3
HANG_GRACE = timedelta(seconds=60)
"""A loop that is this much later than it said hangs."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the file says. Monotonic seconds are the machine's: another process may compare them with its own."""

    pid: int
    node_id: str = ""
    boot_id: str = ""
    state: str = "starting"  # starting, healthy, retrying or parked
    code: str = ""  # why it is not healthy, as in ``trouble`` and ``protocol.Code``
    error: str = ""
    interval_seconds: float = 0
    last_ok_at: str = ""  # by the wall clock, for people
    last_ok_monotonic: float | None = None
    pulse_due: float = 0  # by when, monotonic, the beat loop must have turned
    observer_due: float = 0
    observer_error: str = ""
    worker_due: float | None = None  # None before its first turn
    job_id: str = ""  # that runs
    job_phase: str = ""
    job_percent: int = 0


class Health:
    """The one writer of the file; both loops tell it how they fare, and by when they will be heard of again."""

    def __init__(self, folder: Path, clock: Clock, *, node_id: str = "", boot_id: str = "") -> None:
        self._path = folder / FILE
        self._clock = clock
        self._lock = Lock()
        self._complained = False
        now = clock.monotonic()
        self._report = Report(
            pid=os.getpid(), node_id=node_id, boot_id=boot_id, pulse_due=now, observer_due=now, worker_due=now
        )

    @property
    def report(self) -> Report:
        """As it stands now."""
        with self._lock:
            return self._report

    def pulse_due_in(self, wait: timedelta) -> None:
        """The beat loop will turn again within ``wait``."""
        self._change(pulse_due=self._clock.monotonic() + wait.total_seconds())

    def observer_due_in(self, wait: timedelta) -> None:
        """The facts loop will turn again within ``wait``."""
        self._change(observer_due=self._clock.monotonic() + wait.total_seconds())

    def answered(self, interval: timedelta, wait: timedelta) -> None:
        """A beat was answered; the next is due in ``wait``."""
        now = self._clock.monotonic()
        self._change(
            state="healthy",
            code="",
            error="",
            interval_seconds=interval.total_seconds(),
            last_ok_at=self._clock.now().isoformat(timespec="seconds"),
            last_ok_monotonic=now,
            pulse_due=now + wait.total_seconds(),
        )

    def failed(self, *, code: str, error: str, parked: bool, wait: timedelta) -> None:
        """A beat was not answered, or with a no; the next try is due in ``wait``."""
        due = self._clock.monotonic() + wait.total_seconds()
        self._change(state="parked" if parked else "retrying", code=code, error=error[:500], pulse_due=due)

    def worker_due_in(self, wait: timedelta) -> None:
        """The loop that works will turn again within ``wait``."""
        self._change(worker_due=self._clock.monotonic() + wait.total_seconds())

    def job(self, id: str, phase: str, percent: int) -> None:
        """How far the job is that runs ("" when none does)."""
        now = self.report
        if (now.job_id, now.job_phase, now.job_percent) != (id, phase, percent):
            self._change(job_id=id, job_phase=phase, job_percent=percent)

    def observer_failed(self, error: str) -> None:
        """The facts could not be told ("" when they could again)."""
        self._change(observer_error=error[:500])

    def hangs(self) -> bool:
        """Whether the beat loop is long past its own word."""
        return self._clock.monotonic() > self.report.pulse_due + HANG_GRACE.total_seconds()

    def close(self) -> None:
        """The agent ends on purpose: nothing is left that could be read as alive."""
        self._path.unlink(missing_ok=True)

    def _change(self, **changes: object) -> None:
        with self._lock:
            self._report = replace(self._report, **changes)  # type: ignore[arg-type]  # names are Report's own
            try:
                atomic.write(self._path, json.dumps(asdict(self._report)), durable=False)
            except OSError as error:  # a full /tmp must not stop a beat; the old file goes stale, and so unhealthy
                if not self._complained:
                    log.warning("%s cannot be written: %s", self._path, error.strerror)
                self._complained = True
            else:
                self._complained = False


def make_folder(folder: Path) -> None:
    """Make the folder for the file, ours alone; OSError where it is somebody else's (/tmp is open to all)."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of uid {os.geteuid()}")
    atomic.write(folder / ".preflight", "", durable=False)
    (folder / ".preflight").unlink()


def read(folder: Path) -> Report | None:
    """The report in the folder, or None where no agent has written one that can be read."""
    try:
        return Report(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Verdict:
    """Healthy or not, and one line why."""

    healthy: bool
    line: str


def judge(report: Report | None, *, monotonic: float, alive: bool) -> Verdict:
    """What the report means now; ``alive`` says whether its process still exists."""
    if report is None:
        return Verdict(False, "not running: no agent has written its health here")
    if not alive:
        return Verdict(False, f"not running: process {report.pid} is gone")
    if report.state == "parked":
        return Verdict(False, f"parked ({report.code}): {report.error}")
    if monotonic > report.pulse_due + HANG_GRACE.total_seconds():
        return Verdict(False, f"the beat loop hangs: it was due {monotonic - report.pulse_due:.0f} s ago")
    if report.last_ok_monotonic is None:
        return Verdict(False, f"starting: no beat was answered yet{_because(report)}")
    age = monotonic - report.last_ok_monotonic
    if age > STALE_AFTER_INTERVALS * report.interval_seconds:
        return Verdict(False, f"the last answered beat is {age:.0f} s old{_because(report)}")
    if report.state == "retrying":
        return Verdict(True, f"degraded: retrying{_because(report)}")
    if report.observer_error:
        return Verdict(True, f"degraded: facts cannot be told: {report.observer_error}")
    if report.worker_due is not None and monotonic > report.worker_due + HANG_GRACE.total_seconds():
        return Verdict(True, "degraded: the loop that works hangs; no job goes on")
    if monotonic > report.observer_due + HANG_GRACE.total_seconds():
        return Verdict(True, "degraded: looking at this server takes too long (a hanging driver or file system?)")
    return Verdict(True, f"healthy: the last beat was answered {age:.0f} s ago{_working(report)}")


def is_alive(pid: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def of_folder(folder: Path) -> Verdict:
    """The verdict on the agent whose run folder this is, now."""
    report = read(folder)
    alive = report is not None and is_alive(report.pid)
    return judge(report, monotonic=SystemClock().monotonic(), alive=alive)


def main(_: object = None) -> int:
    """``health``: exit code 0 when healthy, 1 when not. Imports little: a container asks every half minute."""
    folder = Path(os.environ.get("MODELFORGE_AGENT_RUN_DIR", "").strip() or "/tmp/modelforge-agent")  # noqa: S108
    verdict = of_folder(folder)
    sys.stdout.write(verdict.line + "\n")
    return 0 if verdict.healthy else 1


def _working(report: Report) -> str:
    return f"; job {report.job_id}: {report.job_phase}, {report.job_percent} %" if report.job_id else ""


def _because(report: Report) -> str:
    return f" ({report.code}: {report.error})" if report.error else ""
