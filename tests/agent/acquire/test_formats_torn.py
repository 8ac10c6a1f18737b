"""However a file is torn, judging it ends in a verdict and never in another error."""

import io
import pickle
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.acquire.content import formats, safetensors
from agent.acquire.content.safetensors import Damaged
from tests.agent.acquire import samples
from tests.agent.acquire.test_formats import TORCH, npy, tarred, zipped
from tests.agent.acquire.test_pickles import Command

WHOLE = {
    "zip": zipped(TORCH),
    "packed-zip": zipped(TORCH, 8),
    "npz": zipped({"a.npy": npy("'<f4'")}),
    "pickle": pickle.dumps([Command(), {"a": 1.5}], protocol=4),
    "old-pickle": pickle.dumps([Command(), {"a": 1.5}], protocol=0),
    "npy": npy("'<f4'"),
    "tar": tarred(),
    "safetensors": samples.safetensors(),
}
_tear = st.tuples(st.integers(0, 20_000), st.binary(max_size=6), st.booleans())


def torn(content: bytes, tears: list[tuple[int, bytes, bool]]) -> bytes:
    """Bytes changed here and there, or all from there on cut off."""
    for at, instead, cut in tears:
        at %= len(content) + 1
        content = content[:at] + instead + (b"" if cut else content[at + len(instead) :])
    return content


def verdict(content: bytes) -> None:
    """Judge it under a name of data."""
    formats.needed(io.BytesIO(content), len(content), content[:4096], "x.dat")


def header(content: bytes) -> None:
    """Check it as safetensors."""
    with suppress(Damaged):
        safetensors.check(io.BytesIO(content), len(content))


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("judge", [verdict, header], ids=["formats", "safetensors"])
def test_a_torn_file_is_judged(kind: str, judge: Callable[[bytes], None]) -> None:
    @settings(max_examples=80, deadline=None)
    @given(st.lists(_tear, min_size=1, max_size=4))
    def tear(tears: list[tuple[int, bytes, bool]]) -> None:
        judge(torn(WHOLE[kind], tears))

    tear()
