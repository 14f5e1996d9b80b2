"""`email.contentmanager` of the library, which finds what sets a content by `isinstance`."""

from email._contentmanager import *
from email._contentmanager import ContentManager


def _find_set_handler(self, _msg, obj):
    known = self.set_handlers
    found = [type(obj), *(key for key in known if isinstance(key, type) and isinstance(obj, key))]
    names = (f"{type(obj).__module__}.{type(obj).__qualname__}", type(obj).__qualname__, type(obj).__name__, None)
    for key in (*found, *names):
        if key in known:
            return known[key]
    raise KeyError(names[0])


ContentManager._find_set_handler = _find_set_handler
