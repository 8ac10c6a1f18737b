"""What an act refuses, and which fields are at fault."""

from typing import Any

import pytest

from agent.protocol import Code
from nodes.callers import Refused


def refused(act: Any, code: Code = Code.INVALID) -> Refused:
    """The refusal that the act meets."""
    with pytest.raises(Refused) as caught:
        act()
    assert caught.value.code is code
    return caught.value


def fields(refusal: Refused) -> list[str]:
    """The fields at fault."""
    return [error.field for error in refusal.errors]
