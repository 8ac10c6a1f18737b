"""From a file of the plan to its bytes: asks the Hub, follows redirects by hand, shows the token to the Hub alone."""

from collections import OrderedDict
from datetime import UTC, datetime
from urllib.parse import urljoin, urlsplit

from agent.acquire.hub import refusals
from agent.acquire.hub.source import Origin, origin
from agent.acquire.line.answer import Answer
from agent.acquire.line.faults import Expired, Fault, Held
from agent.acquire.line.transport import Line, Way
from agent.acquire.terms import Failed, Plan, PlannedFile
from agent.addresses import is_loopback
from agent.backoff import parse_retry_after

_MOVED = (301, 302, 303, 307, 308)
_NO_MORE = (400, 401, 403, 404, 410)  # how hosts say that a signature has run out
_LASTING = (401, 403, 404, 410, 451)
_KEPT_LINES = 3  # of each thread: to the Hub, to its CDN, and to another


class Desk:
    """Of one thread: its open connections, and how it asks."""

    def __init__(self, way: Way, plan: Plan) -> None:
        self._way = way
        self._plan = plan
        self._lines: OrderedDict[Origin, Line] = OrderedDict()

    def ask(self, file: PlannedFile, address: str | None, wanted: tuple[int, int] | None) -> tuple[Answer, str]:
        """The answer for these bytes (first, and one after the last; None: all of them), and the address it came from.

        ``address`` is one that the Hub gave before; ``Expired`` when it is no longer honoured.
        """
        source = self._way.source
        first = url = address or source.file_url(self._plan.repo_id, self._plan.commit, file.path)
        headers = {"Range": f"bytes={wanted[0]}-{wanted[1] - 1}"} if wanted is not None else {}
        for _ in range(self._way.limits.redirects + 1):
            answer = self._get(url, headers)
            if answer.status not in _MOVED:
                break
            url = self._follow(url, answer)
        else:
            raise Fault("source_unavailable", f"{_host(first)} redirects more than {self._way.limits.redirects} times.")
        if answer.status not in (200, 206, 416):
            self._refused(answer, file, signed=address is not None)
        return answer, url

    def close(self) -> None:
        """End all connections."""
        while self._lines:
            self._lines.popitem()[1].close()

    def _get(self, url: str, headers: dict[str, str]) -> Answer:
        to = origin(url)
        source = self._way.source
        if to[0] != "https" and not (source.may_speak_http and is_loopback(to[1])):
            raise Failed("source_unavailable", f"{to[1]} may only be asked by https://. Check {refusals.ENDPOINT}.")
        if source.token is not None and to == source.origin:
            headers = headers | {"Authorization": f"Bearer {source.token.reveal()}"}
        line = self._lines.get(to)
        if line is None or line.dead:
            line = Line(to, self._way)
            self._lines[to] = line
        self._lines.move_to_end(to)
        while len(self._lines) > _KEPT_LINES:
            self._lines.popitem(last=False)[1].close()
        return line.ask(url, headers)

    def _follow(self, url: str, answer: Answer) -> str:
        """Where a redirect leads; what it says is a stranger's word."""
        answer.drain()
        try:
            target = urljoin(url, answer.headers.get("Location", "")).partition("#")[0]
            origin(target)
        except ValueError:
            raise Fault("source_unavailable", f"{_host(url)} redirects to nowhere.") from None
        if urlsplit(target).username is not None or target == url:
            raise Fault("source_unavailable", f"{_host(url)} redirects to an address that makes no sense.")
        return target

    def _refused(self, answer: Answer, file: PlannedFile, *, signed: bool) -> None:
        """No bytes: why, and whether asking again helps."""
        answer.drain()
        status, headers, host = answer.status, answer.headers, answer.line.host
        now = datetime.now(UTC)
        told = headers.get("Retry-After")
        if status == 429:
            raise Held(host, refusals.wait(told or "", headers.get("RateLimit", ""), now))
        if signed and status in _NO_MORE:
            raise Expired(host, status)
        if status in _LASTING and answer.line.origin == self._way.source.origin:
            raise self._lasting(answer, file, now)
        wait = parse_retry_after(told, now=now)
        longest = self._way.limits.longest_hold
        raise Fault(
            "source_unavailable",
            f"{host} answered {status} for {file.path}.",
            retry_after=min(wait, longest) if wait is not None else None,
        )

    def _lasting(self, answer: Answer, file: PlannedFile, now: datetime) -> Failed:
        plan, headers = self._plan, answer.headers
        error = headers.get("X-Error-Code", "")[:64]
        if error == "EntryNotFound":
            return Failed("not_found", f"{plan.repo_id} has no file {file.path} at {plan.commit}.")
        fault = refusals.Fault(
            "refused", status=answer.status, error=error, message=headers.get("X-Error-Message", "")[:200]
        )
        return refusals.failure(fault, source=self._way.source, repo_id=plan.repo_id, revision=plan.commit, now=now)


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the Hub"
