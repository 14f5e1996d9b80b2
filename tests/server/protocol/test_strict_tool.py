"""What is wrong with the arguments of a call is found without looking at all that is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from sealab.server.app import running
from sealab.server.home import Home
from sealab.server.protocol.message_bounds import VALUES_MAX
from sealab.server.protocol.tools import tools_of
from sealab.server.settings import Settings

from ..conftest import in_this_process

pytestmark = pytest.mark.anyio
MANY = 10_000
ERRORS_MAX = 5
"""The ways in which one value can be wrong: one for each type that it may have."""
WRONG = ([1] * MANY, [[]] * MANY, {str(number): [] for number in range(MANY)}, json.dumps([1] * MANY))


async def test_no_list_of_wrong_items_makes_an_error_of_each_in_any_tool(tmp_path: Path) -> None:
    async with running(Settings(workers_spare=0), Home(tmp_path)) as app:
        models = [tool.prepare() for tool in tools_of(app)]
    errors: list[int] = []
    for model in models:
        for name in model.model_fields:
            for value in WRONG:
                try:
                    model.model_validate({name: value}, strict=True)
                except ValidationError as error:
                    errors.append(sum(each["loc"][0] == name for each in error.errors(include_input=False)))
    assert 0 < max(errors) <= ERRORS_MAX


async def test_a_list_of_wrong_items_is_refused_by_its_first(tmp_path: Path) -> None:
    async with in_this_process(tmp_path) as caller:
        answer = await caller.call("save_skill", name="x", tags=["a", 7, *[1] * MANY])
    assert answer.is_error
    assert answer.content[0].text.startswith("The argument tags of save_skill cannot be 7. Its schema is ")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tool", "argument", "others"),
    [("save_skill", "tags", {"name": "x"}), ("execute_code", "context_vars", {"code": "1"})],
)
async def test_an_argument_given_as_json_text_is_decoded_up_to_the_bound_of_a_message(
    tmp_path: Path, tool: str, argument: str, others: dict[str, str]
) -> None:
    async with in_this_process(tmp_path) as caller:
        answer = await caller.call(tool, **others, **{argument: "[" + "[]," * VALUES_MAX + "1]"})
    assert answer.is_error
    assert f": it holds more than {VALUES_MAX} values. Its schema is " in answer.content[0].text  # type: ignore[union-attr]
