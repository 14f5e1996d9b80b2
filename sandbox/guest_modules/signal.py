"""`signal` as guest code: the names of signals. None ever comes, so that a handler is kept and never called."""

from enum import IntEnum


Signals = IntEnum(
    "Signals",
    "SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM "
    "SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM SIGPROF "
    "SIGWINCH SIGIO SIGPWR SIGSYS",
)


class Handlers(IntEnum):
    SIG_DFL = 0
    SIG_IGN = 1


globals().update({each.name: each for kind in (Signals, Handlers) for each in kind})
NSIG = 65
_handlers = {}


def signal(signalnum, handler, /):
    if not (callable(handler) or handler in tuple(Handlers)):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    before = getsignal(signalnum)
    if signalnum in (Signals.SIGKILL, Signals.SIGSTOP):
        raise OSError(22, "Invalid argument")
    _handlers[Signals(signalnum)] = handler
    return before


def getsignal(signalnum, /):
    return _handlers.get(Signals(signalnum), default_int_handler if signalnum == 2 else Handlers.SIG_DFL)


def default_int_handler(signalnum, frame, /):
    raise KeyboardInterrupt


def strsignal(signalnum, /):
    return Signals(signalnum).name


def valid_signals():
    return set(Signals)


def alarm(seconds, /):
    raise NotImplementedError("no signals come here; use asyncio.timeout(seconds), or the time limit of the run")


def setitimer(which, seconds, interval=0.0, /):
    return alarm(seconds)


def raise_signal(signalnum, /):
    handler = getsignal(signalnum)
    if callable(handler):
        handler(int(signalnum), None)
    elif handler is Handlers.SIG_DFL:
        raise SystemExit(128 + int(signalnum))
