"""Security boundary: which system calls a worker may make, each with its reason.

`restricted` workers run code of the restricted dialect, after everything was imported: they need memory, time, their
channel, and to read the standard library. `process` workers run all of CPython: they also need threads, shared
libraries and files in their scratch directory. Neither has a use for other processes, sockets to anywhere, or the
kernel's larger machinery.
"""

from __future__ import annotations

import errno
from dataclasses import replace

from ...job import Isolation
from .seccomp import NoBits, Null, OneOf, Own, Policy, Rule, refuse

# Bits of mmap(2) and mprotect(2).
_PROT_WRITE = 2
_PROT_EXEC = 4
_MAP_ANONYMOUS = 0x20

# Bits of open(2), the same on x86-64 and arm64: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, and O_TMPFILE's own.
_OPEN_FOR_CHANGE = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000

# Of these, what makes a file and so takes its mode: O_CREAT and O_TMPFILE's own.
_OPEN_MAKES = 0o100 | 0o20000000
# S_ISUID and S_ISGID, inode(7): what code writes lies on the host's disk while it runs.
_SET_ID = 0o6000

# Commands of fcntl(2): F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. Not F_SETOWN and F_SETSIG,
# which send signals to others.
_FCNTL_OWN_DESCRIPTOR = (0, 1, 2, 3, 4, 1030)
# F_GETLK, F_SETLK, F_SETLKW. Not those of open file descriptions, of which the kernel does not say whose they are.
_FCNTL_LOCKS = (5, 6, 7)

# Requests of ioctl(2): TCGETS (is it a terminal?), FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
_IOCTL_HARMLESS = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)

# Options of prctl(2): PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_CAPBSET_READ,
# PR_GET_NO_NEW_PRIVS.
_PRCTL_LOOK_ONLY = (2, 3, 15, 16, 21, 23, 39)

# What pthread_create(3) passes to clone(2) in glibc, and in musl with CLONE_DETACHED: a thread, no namespace.
_CLONE_THREAD = (0x3D0F00, 0x7D0F00)

_AF_UNIX = 1
# Flags of send(2) and recv(2): MSG_PEEK, MSG_TRUNC, MSG_DONTWAIT, MSG_EOR, MSG_WAITALL, MSG_NOSIGNAL, MSG_MORE,
# MSG_CMSG_CLOEXEC. Not MSG_OOB, which reaches little tried code of the kernel's (CVE-2025-38236).
_MSG_UNUSUAL = 0xFFFFFFFF & ~(0x2 | 0x20 | 0x40 | 0x80 | 0x100 | 0x4000 | 0x8000 | 0x40000000)
_CHOOSE_PROCESSORS = "sched_setaffinity"

_COMMON = {
    # Its channel, output, and the files it may open.
    "read": Rule("frames and files"),
    "write": Rule("frames and files"),
    "readv": Rule("frames and files"),
    "writev": Rule("frames and files"),
    "pread64": Rule("reading archives and time zones"),
    "close": Rule("files"),
    "lseek": Rule("files"),
    "fstat": Rule("every open() in Python"),
    "stat": Rule("import looks for files"),
    "lstat": Rule("import looks for files"),
    "newfstatat": Rule("import looks for files"),
    "statx": Rule("import looks for files, with newer C libraries"),
    "access": Rule("the loader and os.access"),
    "faccessat": Rule("os.access"),
    "faccessat2": Rule("os.access, with newer C libraries"),
    "readlink": Rule("os.path.realpath"),
    "readlinkat": Rule("os.path.realpath"),
    "getdents64": Rule("import lists directories"),
    "getcwd": Rule("import of relative paths"),
    "dup": Rule("os.dup"),
    "fcntl": Rule("its own descriptors, no signals to others", ((OneOf(1, _FCNTL_OWN_DESCRIPTOR),),)),
    "ioctl": Rule("open() asks for a terminal", ((OneOf(1, _IOCTL_HARMLESS),),), refuse(errno.ENOTTY)),
    "poll": Rule("waiting for a frame"),
    "ppoll": Rule("waiting for a frame"),
    "select": Rule("waiting for a frame"),
    "pselect6": Rule("waiting for a frame"),
    # Memory.
    "mmap": Rule("memory, never executable", ((NoBits(2, _PROT_EXEC),),)),
    "mprotect": Rule("memory, never executable", ((NoBits(2, _PROT_EXEC),),)),
    "munmap": Rule("memory"),
    "mremap": Rule("realloc of large blocks"),
    "madvise": Rule("the allocators give memory back"),
    "brk": Rule("the C library's allocator"),
    # Time and chance.
    "clock_gettime": Rule("time, where the vDSO has no answer"),
    "clock_getres": Rule("time.get_clock_info"),
    "clock_nanosleep": Rule("time.sleep"),
    "nanosleep": Rule("time.sleep"),
    "gettimeofday": Rule("time"),
    "time": Rule("time"),
    "getrandom": Rule("secrets, uuid4, random seeds"),
    # Itself. No getppid: the process that started a worker has no number here.
    "getpid": Rule("seeds, identifiers"),
    "gettid": Rule("threads"),
    "getuid": Rule("os.getuid, import safety checks"),
    "geteuid": Rule("os.geteuid"),
    "getgid": Rule("os.getgid"),
    "getegid": Rule("os.getegid"),
    "getresuid": Rule("what it is allowed to be"),
    "getresgid": Rule("what it is allowed to be"),
    "getgroups": Rule("what it is allowed to be"),
    "capget": Rule("looking at its capabilities: none"),
    "prctl": Rule("looking at its confinement, naming a thread", ((OneOf(0, _PRCTL_LOOK_ONLY),),)),
    "uname": Rule("platform; the name is the sandbox's own"),
    "getrusage": Rule("time.process_time, the worker's report"),
    "times": Rule("os.times"),
    "sched_yield": Rule("locks"),
    "sched_getaffinity": Rule("os.cpu_count"),
    "getrlimit": Rule("reading its limits"),
    "setrlimit": Rule("lowering its limits once they are known; without CAP_SYS_RESOURCE a hard limit only falls"),
    "prlimit64": Rule("the same, of itself alone", ((OneOf(0, (0,)),), (Own(0),))),
    # Signals, to itself.
    "rt_sigaction": Rule("signal handlers"),
    "rt_sigprocmask": Rule("signal masks"),
    "rt_sigreturn": Rule("coming back from a signal handler"),
    "sigaltstack": Rule("faulthandler"),
    "kill": Rule("os.kill of itself", ((Own(0),),)),
    "tgkill": Rule("abort(3) and raise(3)", ((Own(0),),)),
    "restart_syscall": Rule("the kernel's own, after a stop"),
    # Ending and locking.
    "futex": Rule("locks"),
    "set_robust_list": Rule("the C library at thread start"),
    "rseq": Rule("the C library at thread start"),
    "exit": Rule("the end of a thread"),
    "exit_group": Rule("the end"),
}

_READ_ONLY = {
    "open": Rule("reading the standard library", ((NoBits(1, _OPEN_FOR_CHANGE),),), refuse(errno.EACCES)),
    "openat": Rule("reading the standard library", ((NoBits(2, _OPEN_FOR_CHANGE),),), refuse(errno.EACCES)),
}


def _made_plain(flags: int, mode: int) -> tuple[tuple[NoBits, ...], ...]:
    """Return when open(2) makes no file that is set-user-id; without O_CREAT its mode is whatever stood there."""
    return ((NoBits(flags, _OPEN_MAKES),), (NoBits(mode, _SET_ID),))


_FULL_PYTHON = {
    # Files: where, the root and Landlock decide.
    "open": Rule("files in the scratch directory and the workspace", _made_plain(1, 2), refuse(errno.EPERM)),
    "openat": Rule("files in the scratch directory and the workspace", _made_plain(2, 3), refuse(errno.EPERM)),
    "creat": Rule("files in the scratch directory", ((NoBits(1, _SET_ID),),), refuse(errno.EPERM)),
    "pwrite64": Rule("files in the scratch directory"),
    "preadv": Rule("files"),
    "pwritev": Rule("files in the scratch directory"),
    "preadv2": Rule("os.preadv"),
    "pwritev2": Rule("os.pwritev"),
    "ftruncate": Rule("files in the scratch directory"),
    "truncate": Rule("files in the scratch directory"),
    "fsync": Rule("databases in the scratch directory"),
    "fdatasync": Rule("databases in the scratch directory"),
    "flock": Rule("databases in the scratch directory"),
    "msync": Rule("mapped files"),
    "mkdir": Rule("the scratch directory"),
    "mkdirat": Rule("the scratch directory"),
    "rmdir": Rule("the scratch directory"),
    "unlink": Rule("the scratch directory"),
    "unlinkat": Rule("the scratch directory"),
    "rename": Rule("the scratch directory"),
    "renameat": Rule("the scratch directory"),
    "renameat2": Rule("the scratch directory"),
    "link": Rule("the scratch directory"),
    "linkat": Rule("the scratch directory"),
    "symlink": Rule("the scratch directory"),
    "symlinkat": Rule("the scratch directory"),
    "chmod": Rule("its own files, never set-user-id", ((NoBits(1, _SET_ID),),), refuse(errno.EPERM)),
    "fchmod": Rule("its own files, never set-user-id", ((NoBits(1, _SET_ID),),), refuse(errno.EPERM)),
    "fchmodat": Rule("its own files, never set-user-id", ((NoBits(2, _SET_ID),),), refuse(errno.EPERM)),
    "utimensat": Rule("shutil.copy2"),
    "copy_file_range": Rule("shutil.copy"),
    "chdir": Rule("os.chdir"),
    "fchdir": Rule("os.fchdir, shutil.rmtree"),
    "umask": Rule("tempfile"),
    "fcntl": Rule("its own descriptors and file locks", ((OneOf(1, _FCNTL_OWN_DESCRIPTOR + _FCNTL_LOCKS),),)),
    "dup2": Rule("redirecting output"),
    "dup3": Rule("redirecting output"),
    "pipe": Rule("pipes to itself"),
    "pipe2": Rule("pipes to itself"),
    # Shared libraries: code comes from read-only files, never from memory that could be written. The scratch
    # directory is mounted noexec, and there is no memfd_create(2).
    "mmap": Rule(
        "memory, and the code of shared libraries",
        ((NoBits(2, _PROT_EXEC),), (NoBits(2, _PROT_WRITE), NoBits(3, _MAP_ANONYMOUS))),
    ),
    # Threads.
    "clone": Rule("threads, no processes and no namespaces", ((OneOf(0, _CLONE_THREAD),),)),
    "set_tid_address": Rule("the C library"),
    "get_robust_list": Rule("the C library"),
    "membarrier": Rule("thread fences"),
    "getcpu": Rule("allocators of numerical libraries"),
    "sched_getparam": Rule("thread attributes"),
    "sched_getscheduler": Rule("thread attributes"),
    "sched_get_priority_max": Rule("thread attributes"),
    "sched_get_priority_min": Rule("thread attributes"),
    _CHOOSE_PROCESSORS: Rule("thread pools of numerical libraries"),
    # An event loop of one's own: its wake-up pair is connected to itself, and nothing can be addressed through it.
    "epoll_create1": Rule("asyncio"),
    "epoll_ctl": Rule("asyncio"),
    "epoll_wait": Rule("asyncio"),
    "epoll_pwait": Rule("asyncio"),
    "eventfd2": Rule("asyncio"),
    "socketpair": Rule("asyncio's wake-up pair", ((OneOf(0, (_AF_UNIX,)),),)),
    "sendto": Rule("asyncio's wake-up pair, to nobody else", ((Null(4), NoBits(3, _MSG_UNUSUAL)),)),
    "recvfrom": Rule("asyncio's wake-up pair", ((NoBits(3, _MSG_UNUSUAL),),)),
    "shutdown": Rule("closing the wake-up pair"),
    # Timers that signal itself.
    "alarm": Rule("signal.alarm"),
    "setitimer": Rule("signal.setitimer"),
    "getitimer": Rule("signal.getitimer"),
    "pause": Rule("signal.pause"),
    "rt_sigpending": Rule("signal.sigpending"),
    "rt_sigtimedwait": Rule("signal.sigwait"),
    "rt_sigsuspend": Rule("signal.sigwait"),
    "wait4": Rule("the first process of the namespace waits for the worker; a worker has no children"),
    "waitid": Rule("a worker has no children"),
}

_ANOTHER_PROCESS = ("fork", "vfork", "clone", "execve", "execveat", "memfd_create")
_SOCKETS = (
    *("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4"),
    *("sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg"),
)

_DEADLY = frozenset(
    {
        # Other processes' memory, descriptors and secrets.
        *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp"),
        *("keyctl", "add_key", "request_key"),
        # Large parts of the kernel that were ways in before.
        *("bpf", "userfaultfd", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register"),
        # A way to other roots and namespaces.
        *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "open_by_handle_at", "name_to_handle_at"),
        *("fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "move_mount", "mount_setattr"),
        # The machine.
        *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
        *("swapon", "swapoff", "acct", "quotactl", "syslog", "iopl", "ioperm", "modify_ldt", "personality"),
        *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname"),
        # Filters over this filter could only confuse.
        "seccomp",
    }
)

RESTRICTED = Policy(
    allowed=_COMMON | _READ_ONLY,
    refused={
        name: refuse(errno.EPERM) for name in (*_ANOTHER_PROCESS, *_SOCKETS) if name not in ("execve", "execveat")
    },
    deadly=_DEADLY | {"execve", "execveat"},
)
PROCESS = Policy(
    allowed=_COMMON | _FULL_PYTHON,
    refused={name: refuse(errno.EPERM) for name in (*_ANOTHER_PROCESS, *_SOCKETS) if name not in _FULL_PYTHON},
    deadly=_DEADLY,
)

_SETTING_UP = (
    "clone",
    "close_range",
    "capset",
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
)

NAMES = tuple(
    dict.fromkeys(
        (
            *RESTRICTED.allowed,
            *PROCESS.allowed,
            *RESTRICTED.refused,
            *sorted(RESTRICTED.deadly | PROCESS.deadly),
            *_SETTING_UP,
        )  # in this order
    )
)
"""Every call that needs a number, here or in the steps that set a worker up."""


def policy_for(isolation: Isolation, *, pinned: bool = False) -> Policy:
    """Give the policy of workers of that isolation; a container's worker runs under the one of full Python.

    Those that are `pinned` to some of the processors may not choose others.
    """
    if isolation is Isolation.RESTRICTED:
        return RESTRICTED
    if not pinned:
        return PROCESS
    allowed = {name: rule for name, rule in PROCESS.allowed.items() if name != _CHOOSE_PROCESSORS}
    return replace(PROCESS, allowed=allowed, refused={**PROCESS.refused, _CHOOSE_PROCESSORS: refuse(errno.EPERM)})
