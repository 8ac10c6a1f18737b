"""A container's health check: does this web process answer; do sweeps run, which take a worker and a beat?"""

import json
import sys
from http.client import HTTPConnection, HTTPException

TIMEOUT_SECONDS = 4


def ask(host: str, path: str) -> tuple[int, bytes]:
    """Status and body; any fault on the way raises OSError or HTTPException."""
    connection = HTTPConnection(host, 8000, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def web() -> str:
    """What ails this web server; "" where nothing does."""
    status, _ = ask("127.0.0.1", "/healthz")
    return "" if status == 200 else f"/healthz answered {status}"


def sweep() -> str:
    """What ails the sweeps, as any web server of the stack tells it."""
    _, body = ask("web", "/readyz")
    seen = json.loads(body)["checks"]["sweep"]
    return "" if seen["ok"] else str(seen["detail"])


def main() -> int:
    """0 where it is well, 1 where it is not; the line is what ``docker inspect`` shows."""
    try:
        ill = {"web": web, "sweep": sweep}[sys.argv[1]]()
    except (OSError, HTTPException, ValueError, KeyError, IndexError) as fault:
        ill = f"no answer: {fault!r}"
    sys.stdout.write(f"{ill or 'well'}\n")
    return 1 if ill else 0


if __name__ == "__main__":
    sys.exit(main())
