"""`sealab schedules`: has skills run at set times, as background runs of a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from ...base.errors import RequestRefused, UsageError
from ...governance.caller import LOCAL
from ...use_cases.skills.schedules import ScheduleRequest
from ...use_cases.skills.use_cases import stored
from .command import AuditedAs, Group
from .opened import opened_app
from .skill_options import arguments_of
from .terminal import Here, Output, print_error, report_output

if TYPE_CHECKING:
    from ...app import App
    from ...use_cases.skills.schedules import ListedSchedule

schedules = Group(of_tenant=True, opens=opened_app)
FIRED_BY = "A server over HTTP fires it; one over stdio does so only while its client runs."
_TAKEN_SECONDS = 6.0
"""How long a server is given to take a run: it looks every 2 seconds."""
_WAIT_SECONDS = 300.0


@schedules.command(
    audit=AuditedAs(), takes_options=True, usage="sealab schedules add NAME [options] [--PARAMETER VALUE ...]"
)
async def add(
    _here: Here,
    app: App,
    name: str,
    *words: str,
    skill: str | None = None,
    every: str | None = None,
    skill_version: int | None = None,
    overlap: Literal["skip", "wait", "start"] = "skip",
    missed: Literal["run", "skip"] = "run",
    retries: int = 0,
) -> Output:
    """Run a skill at set times; NAME alone approves its newest version, and resumes a paused one.

    name: what to call the schedule
    skill: the skill, whose parameters are further options; its version is pinned
    every TIMES: such as "weekdays 07:00 Europe/Berlin", "15 minutes", or five fields of cron and a zone
    skill_version N: the version (default: the newest)
    overlap: at a time at which the last run has not ended: skip it, wait for that end, or start another run beside it
    missed: of times at which no server ran: run once when one does, or skip them
    retries N: how often a failed run is tried again, after 1 minute, 2, 4 …; three failures in a row pause the schedule
    """
    arguments = None
    if skill is not None:
        arguments = arguments_of((await stored(app.skills, skill, skill_version)).draft, words)
    request = ScheduleRequest(name, skill or "", every or "", arguments, skill_version, overlap, missed, retries)
    with _as_usage():
        added = await app.schedules.add(request)

    def shown() -> None:
        _print(added)
        print_error(FIRED_BY)

    return Output(added, shown)


@schedules.command()
async def list_(_here: Here, app: App) -> Output:
    """List what runs at set times: last, next, and why not."""
    found = await app.schedules.listed(LOCAL)

    def shown() -> None:
        for each in found["schedules"]:
            _print(each)
        print_error(
            FIRED_BY if found["schedules"] else "Nothing runs at set times. `sealab schedules add` has it do so."
        )

    return Output(found, shown)


@schedules.command(audit=AuditedAs())
async def remove(_here: Here, app: App, name: str) -> Output:
    """Stop running a skill at set times; what runs of it goes on.

    name: the schedule
    """
    with _as_usage():
        removed = await app.schedules.remove(name, LOCAL)
    return Output(removed, f"Removed: {name}.")


@schedules.command(audit=AuditedAs())
async def run(_here: Here, app: App, name: str) -> Output:
    """Run it now as at its time, and wait for the end; a server runs it.

    name: the schedule
    """
    with _as_usage():
        await app.schedules.reached(name, LOCAL)
    run_id = await app.schedules.run(name, LOCAL)
    state = await app.background.state(run_id, None, wait_seconds=_TAKEN_SECONDS)
    if state.execution is None and state.status != "queued":
        state = await app.background.state(run_id, None, wait_seconds=_WAIT_SECONDS)
    if state.execution is not None:
        return report_output(state.execution.report)
    summary = {"run_id": run_id, "status": state.status}
    return Output(
        summary, f"The run {run_id} is {state.status}. A server runs it; `sealab runs show` says what it did."
    )


@contextmanager
def _as_usage() -> Iterator[None]:
    """Report what is refused as a usage error."""
    try:
        yield
    except RequestRefused as error:
        raise UsageError(str(error)) from None


def _print(schedule: ListedSchedule) -> None:
    following = f"next {schedule['next']}" if schedule["next"] is not None else schedule["state"]
    print(f"{schedule['name']}  {schedule['skill']} (version {schedule['version']})  {schedule['every']}  {following}")
    on = f"overlap: {schedule['overlap']}, missed times: {schedule['missed']}, retries: {schedule['retries']}"
    print(f"    {on}, paused after 3 failures in a row; of {schedule['owner']}")
    if "last" in schedule:
        last = schedule["last"]
        print(f"    last {last['at']}: {last['status']} (run {last['run_id']})")
    for key, words in (("why_not", "why not"), ("waits", "waits")):
        if key in schedule:
            print(f"    {words}: {schedule[key]}")  # type: ignore[literal-required]  # one of its keys
