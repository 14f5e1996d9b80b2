"""How a job travels to its worker."""

from __future__ import annotations

from ..confine.limits import Allowance, processes_of
from ..job import Isolation, Job
from .frames import encode


def encode_job(job: Job, isolation: Isolation) -> bytes:
    """Make the `run` frame of a job. Raises `FrameError` when it is too large to send, or holds what JSON cannot."""
    session = job.session is not None
    allowance = Allowance.of(job.limits, session=session, processes=processes_of(isolation, job.limits))
    return encode(
        {
            "t": "run",
            "code": job.code,
            "vars": job.context_vars,
            "limits": allowance.to_json(),
            "session": session,
            "reads": None if job.reads is None else job.reads.to_json(),
            "within": job.within,
            "arguments": job.arguments,
            "literals": job.literals,
            "tells_reads": job.tells_reads,
        }
    )
