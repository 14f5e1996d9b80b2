"""deepagents, with sealab as what runs its code and keeps its files; a scripted model takes the place of a model."""

from __future__ import annotations

from itertools import count

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


class Scripted(GenericFakeChatModel):
    def bind_tools(self, _tools, **_options):
        return self


def script(*calls: tuple[str, dict[str, object]]) -> Scripted:
    """Give a model that calls one tool after another and then ends."""
    ids = count()
    replies = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(next(ids))}]) for name, arguments in calls
    ]
    return Scripted(messages=iter([*replies, AIMessage("done")]))


async def test_an_agent_runs_code_and_works_on_files_in_sealab(url: str, names_of_the_page) -> None:
    backend = names_of_the_page("sealab as the backend of deepagents")["SealabBackend"]
    model = script(
        ("write_file", {"file_path": "/notes/a.txt", "content": "one\ntwo\n"}),
        ("edit_file", {"file_path": "/notes/a.txt", "old_string": "two", "new_string": "three"}),
        ("execute", {"command": "lines = open('notes/a.txt').read().split()"}),
        ("execute", {"command": "print(lines)"}),
        ("read_file", {"file_path": "/notes/a.txt"}),
        ("ls", {"path": "/notes"}),
        ("grep", {"pattern": "three", "output_mode": "content"}),
        ("glob", {"pattern": "*.txt"}),
        ("execute", {"command": "1 / 0"}),
        ("edit_file", {"file_path": "/notes/a.txt", "old_string": "nine", "new_string": "ten"}),
        ("read_file", {"file_path": "/gone.txt"}),
    )
    async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        agent = create_deep_agent(model=model, backend=backend(session))
        state = await agent.ainvoke({"messages": [("user", "go")]}, {"recursion_limit": 100})
    said = [str(message.content) for message in state["messages"] if message.type == "tool"]
    expected = [
        "/notes/a.txt",
        "/notes/a.txt",
        "ok",
        "['one', 'three']",
        "three",
        "/notes/a.txt",
        "three",
        "/notes/a.txt",
        "ZeroDivisionError",
        "The text to replace is there 0 times.",
        "FileNotFoundError",
    ]
    assert [part for part, text in zip(expected, said, strict=True) if part not in text] == [], said
