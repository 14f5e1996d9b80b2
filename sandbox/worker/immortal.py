"""Makes the objects of a zygote immortal, so that no fork copies their pages to count references.

After a fork each page that is written to is copied, and CPython writes to every object it so much as looks at. Since
3.12 an object whose count of references has all its low 32 bits set is immortal: its count is left alone (PEP 683, for
this very purpose; _Py_IMMORTAL_REFCNT in Include/object.h). There is no function to make one, so this writes the count
itself, and only on interpreters whose layout it knows; on others it does nothing.

On CPython 3.12 a run takes 0.79 of the CPU time of zygote and workers with it, and one call after another 0.83 of the
time. These are medians of 12 servers each in turns, of 200 runs each, as `tests/benchmarks/latency.py` measures them.

Extensions that were built for an older stable ABI still write: they count in all 64 bits, so that between their taking
and their giving back an object looks mortal. Nothing comes of it, since its count then is beyond four thousand million,
and what others give back meanwhile cannot bring it down to nothing.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import sysconfig
from types import CodeType

_IMMORTAL = 0xFFFFFFFF
_KNOWN = (
    sys.implementation.name == "cpython"
    and (3, 12) <= sys.version_info[:2] <= (3, 13)
    and sys.maxsize > 1 << 32
    and sys.byteorder == "little"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and not hasattr(sys, "gettotalrefcount")
)


def immortalize() -> int:
    """Make every object that exists now live until the process ends; return how many those are.

    For a process that is about to fork, and whose objects are all meant to stay.
    """
    if not _KNOWN:
        return 0
    gc.collect()
    addresses: set[int] = set()
    found: list[object] = gc.get_objects()
    # Neither the lists and the set of this search, nor what only they hold, are meant to stay.
    passing = {id(found), id(addresses)}
    while found:
        item = found.pop()
        if id(item) in addresses or id(item) in passing:
            continue
        addresses.add(id(item))
        found.extend(gc.get_referents(item))
        if isinstance(item, CodeType):  # the collector does not look into them
            found.extend((item.co_consts, item.co_names, item.co_filename, item.co_name, item.co_qualname))
    for address in addresses:
        ctypes.c_uint32.from_address(address).value = _IMMORTAL
    return len(addresses)
