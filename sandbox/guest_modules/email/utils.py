"""`email.utils` of the library, whose message identifiers name no host."""

import secrets
import time
from email._utils import *
from email._utils import (
    _format_timetuple_and_zone as _format_timetuple_and_zone,
    _has_surrogates as _has_surrogates,
    _sanitize as _sanitize,
    collapse_rfc2231_value as collapse_rfc2231_value,
    decode_params as decode_params,
    decode_rfc2231 as decode_rfc2231,
    format_datetime as format_datetime,
    localtime as localtime,
    quote as quote,
)


def make_msgid(idstring=None, domain=None):
    """Return a new identifier of a message (RFC 5322, section 3.6.4)."""
    own = f".{idstring}" if idstring else ""
    return f"<{int(time.time() * 100)}.{secrets.randbits(96)}{own}@{domain or 'localhost'}>"
