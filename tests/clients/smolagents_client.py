"""smolagents: sealab's tools in its agents, and sealab as what runs the code of its agents."""

from __future__ import annotations

import pytest
from mcp import StdioServerParameters
from smolagents import ChatMessage, CodeAgent, MCPClient, Model
from smolagents.models import MessageRole

from .conftest import ASKS, FAILS, IMAGE


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_tools_are_called_and_say_in_their_text_what_failed_and_what_is_unreachable(transport: str, url: str) -> None:
    server = StdioServerParameters(command="sealab") if transport == "stdio" else {"url": url}
    with MCPClient(server, structured_output=False) as tools:
        named = {tool.name: tool for tool in tools}
        assert "result: 2" in named["execute_code"](code="1 + 1")
        assert "image (image/png" in named["execute_code"](code=IMAGE)
        failed = named["execute_code"](code=FAILS)
        for said in ("ZeroDivisionError (line 2)", "before", "(run "):
            assert said in failed
        assert "this client cannot ask one" in named["execute_code"](code=ASKS)
        found = named["search_tools"](query="packages")
        assert "packages.package_requirements(name)" in found
        assert "unreachable: gone" in found


def test_tools_give_their_structured_content_where_it_is_asked_for(url: str) -> None:
    with MCPClient({"url": url}, structured_output=True) as tools:
        named = {tool.name: tool for tool in tools}
        assert named["execute_code"](code="1 + 1")["result"] == 2
        assert named["execute_code"](code=FAILS)["error"]["line"] == 2


def test_the_program_of_the_page_runs(of_the_page) -> None:
    assert of_the_page("smolagents").splitlines()[-1] == 'result: {"a": 2, "b": 1}'


class Scripted(Model):
    """A model that gives the same programs in the same order."""

    def __init__(self, *programs: str) -> None:
        super().__init__()
        self.programs = iter(programs)

    def generate(self, _messages, **_options):
        return ChatMessage(
            role=MessageRole.ASSISTANT, content=f"Thought: next.\n<code>\n{next(self.programs)}\n</code>"
        )


def test_the_code_of_an_agent_runs_in_sealab_with_its_variables_failures_and_final_answer(names_of_the_page) -> None:
    executor = names_of_the_page("sealab as the executor of smolagents")["SealabExecutor"]
    model = Scripted(
        "n = start + 1\nprint('n is', n)", "1 / 0", "import os\nos.system('id')", "if n:\n    final_answer(n * 2)"
    )
    with CodeAgent(tools=[], model=model, executor=executor(), verbosity_level=0) as agent:
        assert agent.run("go", additional_args={"start": 20}) == 42
        first, second, third = (step for step in agent.memory.steps[1:4])
    assert "n is 21" in first.observations
    assert "ZeroDivisionError" in str(second.error)
    assert third.error is not None


def test_tools_that_cannot_run_in_sealab_are_refused_by_name(names_of_the_page) -> None:
    executor = names_of_the_page("sealab as the executor of smolagents")["SealabExecutor"]()
    try:
        with pytest.raises(ValueError, match=r"weather.*sealab servers add"):
            executor.send_tools({"weather": None})
    finally:
        executor.cleanup()
