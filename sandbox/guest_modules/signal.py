"""`signal` as guest code: the names of signals. None ever comes, so that a handler is kept and never called."""

from enum import IntEnum


class Signals(IntEnum):
    """The signals of Linux."""

    SIGHUP = 1
    SIGINT = 2
    SIGQUIT = 3
    SIGILL = 4
    SIGTRAP = 5
    SIGABRT = 6
    SIGBUS = 7
    SIGFPE = 8
    SIGKILL = 9
    SIGUSR1 = 10
    SIGSEGV = 11
    SIGUSR2 = 12
    SIGPIPE = 13
    SIGALRM = 14
    SIGTERM = 15
    SIGCHLD = 17
    SIGCONT = 18
    SIGSTOP = 19
    SIGTSTP = 20
    SIGTTIN = 21
    SIGTTOU = 22
    SIGURG = 23
    SIGXCPU = 24
    SIGXFSZ = 25
    SIGVTALRM = 26
    SIGPROF = 27
    SIGWINCH = 28
    SIGIO = 29
    SIGPWR = 30
    SIGSYS = 31


class Handlers(IntEnum):
    """What a signal does without a function of the program."""

    SIG_DFL = 0
    SIG_IGN = 1


globals().update({each.name: each for kind in (Signals, Handlers) for each in kind})
NSIG = 65
_handlers = {}


def signal(signalnum, handler, /):
    """Keep a handler and return the one before."""
    if not (callable(handler) or handler in tuple(Handlers)):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    before = getsignal(signalnum)
    if signalnum in (Signals.SIGKILL, Signals.SIGSTOP):
        raise OSError(22, "Invalid argument")
    _handlers[Signals(signalnum)] = handler
    return before


def getsignal(signalnum, /):
    """Return the handler that was set."""
    return _handlers.get(Signals(signalnum), default_int_handler if signalnum == 2 else Handlers.SIG_DFL)


def default_int_handler(signalnum, frame, /):
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt


def strsignal(signalnum, /):
    """Return the name of a signal."""
    return Signals(signalnum).name


def valid_signals():
    """Return all signals."""
    return set(Signals)


def alarm(seconds, /):
    """Raise NotImplementedError: no signal ever comes."""
    raise NotImplementedError("no signals come here; use asyncio.timeout(seconds), or the time limit of the run")


def setitimer(which, seconds, interval=0.0, /):
    """Raise NotImplementedError: no signal ever comes."""
    return alarm(seconds)


def raise_signal(signalnum, /):
    """Call the handler of a signal."""
    handler = getsignal(signalnum)
    if callable(handler):
        handler(int(signalnum), None)
    elif handler is Handlers.SIG_DFL:
        raise SystemExit(128 + int(signalnum))
