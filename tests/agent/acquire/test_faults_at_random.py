"""Faults of every kind, several at once and at any moment: never a wrong byte, and the next attempt gets there."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.acquire.terms import Brake, Stopped
from tests.agent.acquire.acquiring import REPO, bytes_of, lying_in
from tests.agent.acquire.attempts import LIMITS, Attempt
from tests.hub.contents import Generated, weights
from tests.hub.faults import Fault, Kind
from tests.hub.hub import Hub
from tests.hub.repositories import Files

SEEDS = range(24)
WHERE: list[Kind] = ["cdn", "cdn", "resolve"]
PASSING = {"published", "source_unavailable", "stalled", "verification_failed", "rate_limited", "storage_error"}
FILES: Files = {
    "config.json": b"{}",
    "a/b/notes.txt": b"notes " * 3_000,
    "empty.txt": b"",
    "large.safetensors": weights(900_000, seed=1),
    "small.safetensors": weights(1_000, seed=2),
    **{f"shard-{number}.safetensors": weights(200_000 + number, seed=number + 3) for number in range(4)},
}
OTHER = Generated(900_000, seed=99)

KINDS: list[Callable[[random.Random], Fault]] = [
    lambda dice: Fault(cut_at=dice.randrange(100_000)),
    lambda dice: Fault(stall_at=dice.randrange(50_000)),
    lambda dice: Fault(drop=True),
    lambda dice: Fault(silent=True),
    lambda dice: Fault(status=dice.choice([400, 403, 404, 416, 500, 502, 503])),
    lambda dice: Fault(status=429, headers={"Retry-After": dice.choice(["0", "1", "600", "soon"])}),
    lambda dice: Fault(ignore_range=True),
    lambda dice: Fault(ignore_range=True, chunked=True),
    lambda dice: Fault(chunked=True),
    lambda dice: Fault(content_range="bytes {end}-{start}/{size}"),
    lambda dice: Fault(headers={"ETag": f'"{dice.randrange(3)}"'}),
    lambda dice: Fault(headers={"ETag": None, "Accept-Ranges": None}),
    lambda dice: Fault(headers={"Content-Length": str(dice.randrange(10))}),
    lambda dice: Fault(flip=tuple(dice.randrange(200_000) for _ in range(3))),
    lambda dice: Fault(shift=dice.randrange(1, 1_000)),
    lambda dice: Fault(size=dice.choice([0, 1, 999, 900_001, 10**7])),
    lambda dice: Fault(content=OTHER),
    lambda dice: Fault(gzip=True),
    lambda dice: Fault(redirect="{path}"),
    lambda dice: Fault(wait=dice.uniform(0, 0.3)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_never_a_wrong_byte_and_in_the_end_the_right_ones(hub: Hub, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    repo = hub.repo(REPO, FILES)
    limits = replace(LIMITS, connections=dice.randrange(1, 6), segment_bytes=dice.choice([32_768, 100_000, 10**6]))
    attempt = Attempt(hub, tmp_path / "root", repo, limits=replace(limits, tries=3, open_files=dice.randrange(1, 9)))
    hub.links.live_uses = dice.choice([None, 1, 4])
    for _ in range(3):
        hub.mend()
        for _ in range(dice.randrange(1, 6)):
            kind: Kind = dice.choice(WHERE)
            hub.fault(kind, dice.choice(KINDS)(dice), after=dice.randrange(12), times=dice.choice([1, 2, 5, None]))
        attempt.brake = Brake()
        if dice.random() < 0.3:  # the job is stopped in the middle
            hub.fault("cdn", Fault(meanwhile=lambda: attempt.brake.pull("released")), after=dice.randrange(9), times=1)
        try:
            ended = attempt.run()
        except Stopped:
            ended = "stopped"
        assert ended in PASSING | {"stopped", "not_found", "token_invalid", "gated_no_token", "gated_not_accepted"}
        if ended == "published":
            break
        assert not attempt.published.exists()
    else:
        hub.mend()
        hub.links.live_uses = None
        attempt.brake = Brake()
        assert attempt.run() == "published"
    assert lying_in(attempt.published) == bytes_of(repo)
