"""What a worker says of the calls in its program is read under bounds."""

from __future__ import annotations

from typing import Any

import pytest

from sealab.server.host_functions.written_calls import ARGUMENTS_JUDGED_MAX, read_places


def sent(given: int, others: int) -> dict[str, Any]:
    return {
        "given": {f"a{at}": 1 for at in range(given)},
        "others": [f"b{at}" for at in range(others)],
        "more": False,
        "positional": 0,
        "unawaited": False,
        "certain": True,
        "plain_function": "",
    }


@pytest.mark.parametrize(
    ("given", "others"), [(ARGUMENTS_JUDGED_MAX + 1, 0), (0, ARGUMENTS_JUDGED_MAX + 1), (ARGUMENTS_JUDGED_MAX, 1)]
)
def test_a_call_with_more_arguments_than_are_judged_is_left_to_the_call(given: int, others: int) -> None:
    [place] = read_places([["up.run", 1, False, [sent(given, others), sent(ARGUMENTS_JUDGED_MAX, 0)], 1]])["up.run"]
    assert [len(call.given) for call in place.calls] == [ARGUMENTS_JUDGED_MAX]
