"""Runs moto's server with writes one after the other, as S3 has them: by itself it looks and writes in two steps."""

from __future__ import annotations

import sys
import threading
from functools import wraps
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

_WRITING = threading.Lock()
_put_object = S3Response.put_object


@wraps(_put_object)
def _one_at_a_time(self: S3Response) -> Any:
    with _WRITING:
        return _put_object(self)


S3Response.put_object = _one_at_a_time  # type: ignore[method-assign]  # what it is for
main(sys.argv[1:])
