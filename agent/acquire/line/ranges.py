"""Whether an answer holds the very bytes that were asked for: what a server says is compared, not believed."""

import re

from agent.acquire.line.answer import Answer
from agent.acquire.line.faults import Fault, Restart
from agent.acquire.terms import PlannedFile

_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")
_STRONG = re.compile(r'"[!#-~\x80-\xff]*"')
_MAX_ETAG = 512


def etag(answer: Answer) -> str:
    """The answer's strong ETag; "" where it has none."""
    told = (answer.headers.get("ETag") or "").strip()
    return told if len(told) <= _MAX_ETAG and _STRONG.fullmatch(told) else ""


def check(answer: Answer, file: PlannedFile, wanted: tuple[int, int] | None, known_etag: str) -> None:
    """Raises what an answer of 200, 206 or 416 lacks. ``wanted``: first byte, and one after the last; None: all."""
    host = answer.line.host
    if wanted is not None and answer.status == 416:
        raise Restart("source_unavailable", f"{host} has no such bytes of {file.path}.")
    if answer.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise Fault("source_unavailable", f"{host} sends {file.path} packed, although it was asked for as it is.")
    now = etag(answer)
    if known_etag and now and now != known_etag:
        raise Restart("source_unavailable", f"{file.path} at {host} is not what it was a moment ago.")
    if wanted is None:
        _whole(answer, file)
    elif answer.status == 200:
        raise Restart("source_unavailable", f"{host} sends {file.path} only as a whole.", whole=True)
    else:
        _part(answer, file, wanted)


def _whole(answer: Answer, file: PlannedFile) -> None:
    host = answer.line.host
    if answer.status != 200:
        raise Fault("source_unavailable", f"{host} answered {answer.status} for the whole of {file.path}.")
    if answer.length is not None and answer.length != file.size:
        said = f"{host} has {answer.length} bytes of {file.path}, of which the repository says {file.size}."
        raise Fault("source_unavailable", said)


def _part(answer: Answer, file: PlannedFile, wanted: tuple[int, int]) -> None:
    host, (first, end) = answer.line.host, wanted
    told = _RANGE.fullmatch((answer.headers.get("Content-Range") or "").strip())
    if answer.status != 206 or told is None:
        raise Fault("source_unavailable", f"{host} does not say which bytes of {file.path} it sends.")
    if int(told[3]) != file.size:
        said = f"{host} has {told[3]} bytes of {file.path}, of which the repository says {file.size}."
        raise Fault("source_unavailable", said)
    if (int(told[1]), int(told[2])) != (first, end - 1) or answer.length not in (None, end - first):
        raise Fault("source_unavailable", f"{host} sends other bytes of {file.path} than it was asked for.")
