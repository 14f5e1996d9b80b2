"""What is proposed of tools whose servers do not say whether they only read."""

from __future__ import annotations

from typing import Any

import pytest

from sealab.tools_registry.describing.effects import Effect, proposed_effect


def proposed(name: str, description: str = "", *arguments: str) -> Effect:
    schema: dict[str, Any] = {"type": "object", "properties": {each: {"type": "string"} for each in arguments}}
    return proposed_effect(name, description, schema)


@pytest.mark.parametrize(
    ("name", "description", "arguments"),
    [
        ("get_issue", "Get the details of an issue.", ["issue_number"]),
        ("slack_list_channels", "List public channels with pagination", ["limit"]),
        ("git_status", "Shows the status of the working tree", ["repo_path"]),
        ("git_diff_staged", "Shows changes that are staged for commit", ["repo_path"]),
        ("searchCode", "Search for code across repositories", ["query"]),
        ("read_query", "Execute a SELECT query on the database", ["query"]),
        ("weather", "Returns the weather of tomorrow. It creates no entry.", ["city"]),
        ("get_pull_request_comments", "", []),
    ],
)
def test_tools_that_speak_of_reading_are_proposed_as_such(name, description, arguments) -> None:
    assert proposed(name, description, *arguments) is Effect.READ


@pytest.mark.parametrize(
    ("name", "description", "arguments"),
    [
        ("create_issue", "Create an issue.", []),
        ("get_or_create_user", "Get a user.", []),
        ("query", "Run a SQL query.", ["sql"]),
        ("find_and_fix", "Finds mistakes and overwrites the file.", []),
        ("list_files", "List files.", ["overwrite"]),
        ("git_commit", "Records changes.", []),
        ("do", "", []),
        ("frobnicate", "Whatever it is.", []),
        ("", "", []),
        ("slack_post_message", "Post a message", []),
        ("resolve_issue", "Reads an issue, and more.", []),
    ],
)
def test_where_anything_speaks_of_writing_or_nothing_of_reading_a_write_is_proposed(
    name, description, arguments
) -> None:
    assert proposed(name, description, *arguments) is Effect.WRITE


def test_a_schema_that_is_none_and_a_text_without_end_are_taken() -> None:
    assert proposed_effect("get_x", "a" * 100_000, True) is Effect.READ
    assert proposed_effect("get_x", "Get. " * 100_000, {"properties": ["odd"]}) is Effect.READ
