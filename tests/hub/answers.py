"""An answer of the stand-in Hub: its head, its bytes, and both after a fault befell them."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.hub.contents import Content, Flipped, Generated, Given, Joined
from tests.hub.faults import Fault, Request

NOTHING = Given(b"")


@dataclass
class Answer:
    """What is sent: ``length`` bytes of ``content`` from ``start`` on."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: Content = NOTHING
    start: int = 0
    length: int = 0
    chunked: bool = False
    told: Any = None  # what the bytes are the JSON of

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The body."""
        return self.content.pieces(self.start, self.length)


def whole(data: bytes, *, status: int = 200, kind: str = "text/plain", **headers: str) -> Answer:
    """An answer of these few bytes."""
    return Answer(status, {"Content-Type": kind} | _dashed(headers), Given(data), 0, len(data))


def told(value: Any, *, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON."""
    answer = whole(json.dumps(value).encode(), status=status, kind="application/json; charset=utf-8", **headers)
    answer.told = value
    return answer


def refusal(status: int, code: str = "", message: str = "") -> Answer:
    """The Hub says no, in its own words."""
    answer = told({"error": message or f"refused with {status}"}, status=status)
    if code:
        answer.headers["X-Error-Code"] = code
    if message:
        answer.headers["X-Error-Message"] = message
    return answer


def moved(location: str, *, status: int = 302, **headers: str) -> Answer:
    """It is elsewhere."""
    return whole(f"Found. Redirecting to {location}".encode(), status=status, Location=location, **headers)


def bytes_of(content: Content, request: Request, etag: str, fault: Fault, **headers: str) -> Answer:
    """A file, or the part of it that was asked for, as far as the fault leaves it right."""
    content = _spoilt(content, fault)
    head = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes", "ETag": f'"{etag}"'}
    head |= _dashed(headers)
    if request.range is None or fault.ignore_range:
        return Answer(200, head, content, min(fault.shift, content.size), content.size)
    first, last = request.range
    if first < 0:
        first, last = max(content.size + first, 0), None
    if first >= content.size:
        head["Content-Range"] = f"bytes */{content.size}"
        return Answer(416, head)
    end = content.size - 1 if last is None else min(last, content.size - 1)
    said = fault.content_range or "bytes {start}-{end}/{size}"
    head["Content-Range"] = said.format(start=first, end=end, size=content.size)
    return Answer(206, head, content, first + fault.shift, end - first + 1)


def befallen(answer: Answer, fault: Fault) -> Answer:
    """The answer after what goes wrong with its head or its JSON."""
    if fault.edit is not None and answer.told is not None:
        data = json.dumps(fault.edit(answer.told)).encode()
        answer = replace(answer, content=Given(data), start=0, length=len(data))
    if fault.gzip:
        data = gzip.compress(b"".join(bytes(piece) for piece in answer.pieces()))
        answer = replace(answer, content=Given(data), start=0, length=len(data))
        answer.headers["Content-Encoding"] = "gzip"
    answer.chunked = fault.chunked
    for name, text in fault.headers.items():
        answer.headers = {known: value for known, value in answer.headers.items() if known.lower() != name.lower()}
        if text is not None:
            answer.headers[name] = text
    return answer


def in_its_place(request: Request, fault: Fault) -> Answer | None:
    """What the fault answers instead, if anything."""
    if fault.redirect:
        return moved(fault.redirect.replace("{path}", request.path))
    if fault.body is not None:
        return whole(fault.body, status=fault.status or 200, kind="application/json")
    if fault.status:
        return refusal(fault.status, fault.error_code, fault.error_message)
    return None


def _spoilt(content: Content, fault: Fault) -> Content:
    content = fault.content or content
    if fault.flip:
        content = Flipped(content, fault.flip)
    if fault.size is not None:
        content = _Resized(content, fault.size)
    return content


@dataclass(frozen=True)
class _Resized:
    """A content cut short, or followed by other bytes."""

    content: Content
    size: int

    def pieces(self, start: int, length: int) -> Iterator[bytes | memoryview]:
        length = min(length, self.size - start)
        more = max(self.size - self.content.size, 0)
        return Joined((self.content, Generated(more, seed=-1 % 2**32))).pieces(start, length)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}
