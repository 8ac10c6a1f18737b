"""A process of its own that asks the Hub once what a repository holds, by the Hub's own library, and prints the answer.

Apart from the agent, because the library keeps state in its process, reads the environment on import, has no bound for
the whole of an answer, and unpacks a large listing into hundreds of megabytes. Here all of that ends with the process.
The question comes on stdin, since it holds the token.
"""

import json
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent import __version__
from agent.acquire.hub import reach
from agent.acquire.hub.source import Source, origin
from agent.config import is_loopback
from agent.variables import Secret

_MAX_REDIRECTS = 5
_MAX_FILES = 200_000
_MEMORY_BYTES = 3 * 1024**3  # a listing that unpacks into more is an attack


class TooLarge(Exception):
    """The answer's body is longer than anything we would read."""


class Astray(Exception):
    """The Hub sent us to where nothing may be asked."""


def main() -> int:
    """Read the question, print the answer; every fault is an answer too."""
    question = json.load(sys.stdin)
    signal.alarm(question["within_seconds"] + 5)  # should nobody be left to end us
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = _MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    logging.disable(logging.CRITICAL)
    try:
        answer = _ask(question)
    except MemoryError:
        answer = _fault("too_large")
    except ImportError as error:
        answer = _fault("broken", said=error.name or "")
    sys.stdout.write(json.dumps(answer))
    return 0


def _ask(question: dict[str, Any]) -> dict[str, Any]:
    # The library belongs to this process alone; its exceptions have no other names.
    import httpx2  # noqa: PLC0415
    from huggingface_hub import HfApi, set_client_factory  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    token = question["token"]
    source = Source(
        endpoint=question["endpoint"],
        token=Secret(token) if token else None,
        ca_file=Path(question["ca_file"]) if question["ca_file"] else None,
        proxy=question["proxy"],
        no_proxy=question["no_proxy"],
    )
    heard: list[Any] = []

    class Guarded(httpx2.BaseTransport):
        """One way out: the token only to the Hub's own origin, HTTPS elsewhere, plain bytes, and not too many."""

        def __init__(self) -> None:
            trust = source.trust() if source.endpoint.startswith("https") else ssl.create_default_context()
            self._direct = httpx2.HTTPTransport(verify=trust, trust_env=False)
            self._proxied = self._direct
            if source.proxy:
                self._proxied = httpx2.HTTPTransport(verify=trust, trust_env=False, proxy=source.proxy)

        def handle_request(self, request: Any) -> Any:
            url = str(request.url)
            if origin(url) != source.origin:
                request.headers.pop("Authorization", None)
                local = source.may_speak_http and is_loopback(request.url.host)
                if (request.url.scheme != "https" and not local) or reach.astray(url, source):
                    raise Astray
            request.headers["Accept-Encoding"] = "identity"
            response = (self._proxied if source.proxy_for(url) else self._direct).handle_request(request)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise TooLarge  # packed although we asked for it plain: it could unpack to anything
            return httpx2.Response(response.status_code, headers=response.headers, stream=Bounded(response.stream))

    class Bounded(httpx2.SyncByteStream):
        """A body that ends where our patience does."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            read = 0
            for chunk in self._stream:
                read += len(chunk)
                if read > question["max_bytes"]:
                    raise TooLarge
                yield chunk

        def close(self) -> None:
            self._stream.close()

    set_client_factory(
        lambda: httpx2.Client(
            transport=Guarded(),
            trust_env=False,
            follow_redirects=True,
            max_redirects=_MAX_REDIRECTS,
            event_hooks={"response": [heard.append]},
        )
    )
    api = HfApi(
        endpoint=source.endpoint, token=token or False, library_name="modelforge-agent", library_version=__version__
    )
    try:
        info = api.model_info(
            question["repo_id"],
            revision=question["revision"],
            files_metadata=True,
            timeout=question["read_seconds"],
            token=token or False,
        )
    except HfHubHTTPError as error:
        return _refusal(error.response)
    except (TooLarge, Astray, httpx2.TooManyRedirects) as error:
        return _fault("too_large" if isinstance(error, TooLarge) else "astray")
    except httpx2.TimeoutException:
        return _fault("silent")
    except httpx2.HTTPError as error:
        return _unreached(error)
    except json.JSONDecodeError:
        return _fault("not_json")
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # whatever the library trips over in the body
        return _fault("malformed", said=type(error).__name__, gated=_gated(heard))
    if len(info.siblings or []) > _MAX_FILES:
        return _fault("too_large")
    return {
        "sha": info.sha,
        "gated": bool(info.gated),
        "files": [
            {
                "path": file.rfilename,
                "size": file.lfs.size if file.lfs else file.size,
                "large": file.lfs is not None,
                "digest": file.lfs.sha256 if file.lfs else file.blob_id,
            }
            for file in info.siblings or []
        ],
    }


def _refusal(response: Any) -> dict[str, Any]:
    headers = response.headers
    return _fault(
        "refused",
        status=response.status_code,
        error=headers.get("X-Error-Code", "")[:64],
        message=headers.get("X-Error-Message", "")[:200],
        retry_after=headers.get("Retry-After", "")[:64],
        rate_limit=headers.get("RateLimit", "")[:256],
    )


def _unreached(error: BaseException) -> dict[str, Any]:
    """Which of the many ways a connection fails this was; never in the library's words, which may quote an address."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _fault("untrusted", said=cause.verify_message)
        if isinstance(cause, ssl.SSLError):
            return _fault("tls", said=cause.reason or "")
        if isinstance(cause, socket.gaierror):
            return _fault("unresolved", said=cause.strerror or "")
        if isinstance(cause, OSError) and cause.errno:
            return _fault("unreached", said=os.strerror(cause.errno))
        cause = cause.__cause__ or cause.__context__
    return _fault("unreached", said=type(error).__name__)


def _gated(heard: list[Any]) -> bool:
    """Whether the body that the library tripped over says that the repository is gated."""
    try:
        body = heard[-1].json()
    except (IndexError, ValueError):
        return False
    return bool(body.get("gated")) if isinstance(body, dict) else False


def _fault(kind: str, **details: Any) -> dict[str, Any]:
    return {"fault": {"kind": kind, **details}}


if __name__ == "__main__":
    sys.exit(main())
