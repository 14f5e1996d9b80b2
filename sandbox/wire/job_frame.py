"""How a job travels to its worker."""

from __future__ import annotations

import base64
from dataclasses import asdict

from ..confine.limits import Allowance, processes_of
from ..errors import FrameError
from ..job import Isolation, Job, Start
from .frames import TRACE_BYTES_MAX, encode


def encode_job(job: Job, isolation: Isolation, *, records: bool = False) -> bytes:
    """Make the `run` frame of a job that has a start; `records` asks for its trace.

    Raises `FrameError` when it is too large to send, or holds what JSON cannot.
    """
    if len(job.trace) > TRACE_BYTES_MAX:
        raise FrameError(f"Its trace is {len(job.trace)} bytes large; at most {TRACE_BYTES_MAX} can be followed.")
    start = job.start or Start.now()
    session = job.session is not None
    allowance = Allowance.of(job.limits, session=session, processes=processes_of(isolation, job.limits))
    return encode(
        {
            "t": "run",
            "code": job.code,
            "vars": job.context_vars,
            "limits": allowance.to_json(),
            "session": session,
            "reads": None if job.reads is None else asdict(job.reads),
            "within": job.within,
            "arguments": job.arguments,
            "literals": job.literals,
            "tells_reads": job.tells_reads,
            "seed": start.seed.hex(),
            "time_ns": start.time_ns,
            "trace": base64.b64encode(job.trace).decode("ascii"),
            "records": records,
            "threads": job.threads,
        }
    )
