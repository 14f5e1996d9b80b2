"""`atexit` as guest code: functions that are called when the program has ended."""

_registered = []


def register(func, /, *args, **kwargs):
    _registered.append((func, args, kwargs))
    return func


def unregister(func, /):
    """Do not call `func` after all."""
    _registered[:] = [each for each in _registered if each[0] != func]


def run_exitfuncs():
    while _registered:
        func, args, kwargs = _registered.pop()
        func(*args, **kwargs)


_run_exitfuncs = run_exitfuncs


def _ncallbacks():
    return len(_registered)


def _clear():
    _registered.clear()
