async def test_commits_are_counted_by_author_and_day():
    told = await project_changes("/srv/project", timezone="Europe/Zurich", max_count=3)
    assert told["reported_at"] == "2026-01-05T10:00:00+01:00"
    assert told["commits"] == 3
    assert told["authors"] == {"Ann Example": 2, "Bob Example": 1}
    assert told["days"] == {"2026-01-04": 2, "2026-01-02": 1}
    assert told["subjects"][0] == "Answer in half the time"


async def test_an_empty_repository_has_no_changes():
    assert (await project_changes("/srv/empty"))["commits"] == 0


async def test_what_the_server_refuses_is_told():
    try:
        await project_changes("/nowhere")
    except ToolError as error:
        assert "/nowhere" in str(error)
    else:
        raise AssertionError("the error was lost")
