"""The commit of a job: told once by its agent, and the same ever after, so that a branch that moves mixes nothing."""

import re
from datetime import datetime
from typing import Any

from agent.protocol import Code
from agent.wire import FieldError
from artifacts import endings, subjects
from artifacts.models import Job
from nodes.audit import record_uncounted
from nodes.callers import Caller, Refused
from nodes.event_types import EventType

_COMMIT = re.compile(r"[0-9a-f]{40}")


def pin(job: Job, commit: str, *, by: Caller, now: datetime) -> dict[str, Any]:
    """The fields that pin a job, whose row is held, to the commit; none where it stands already.

    Raises:
        Refused: ``invalid`` where the job is pinned to another commit.
    """
    if not commit or commit == job.commit:
        return {}
    if not _COMMIT.fullmatch(commit):
        detail = "A commit has 40 hex digits."
        raise Refused(Code.INVALID, f"commit: {detail}", errors=[FieldError(field="commit", detail=detail)])
    if job.commit:
        detail = f"This job is pinned to {job.commit}, and stays so. Fetch that commit."
        raise Refused(Code.INVALID, f"commit: {detail}", errors=[FieldError(field="commit", detail=detail)])
    told = endings.about(job) | {"commit": commit}
    record_uncounted(EventType.JOB_PINNED, by=by, about=subjects.job(job), at=now, **told)
    return {"commit": commit}
