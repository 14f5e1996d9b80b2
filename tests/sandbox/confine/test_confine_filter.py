"""The system call filters, judged call by call: on this machine's architecture and, by simulation, on arm64."""

from __future__ import annotations

import errno
import struct

import pytest

from sealab.sandbox.confine.system_calls import allow_list, numbers, seccomp

from ..classic_bpf import ALLOW, KILL, answer

ARCHITECTURES = [numbers.X86_64, numbers.AARCH64]
POLICIES = {"restricted": allow_list.RESTRICTED, "process": allow_list.PROCESS}
ENOSYS = seccomp.refuse(errno.ENOSYS)
EPERM = seccomp.refuse(errno.EPERM)
OWN_PID = 4711


@pytest.fixture(params=ARCHITECTURES, ids=lambda architecture: architecture.name)
def architecture(request):
    return request.param


@pytest.fixture(params=POLICIES)
def its_policy(request):
    return POLICIES[request.param]


def judge(its_policy, architecture, name, *arguments):
    """What becomes of a call with these arguments, in the worker whose pid is OWN_PID."""
    built = seccomp.build(its_policy, architecture)
    code = bytearray(built.code)
    for offset in built.own_pid_offsets:
        struct.pack_into("=I", code, offset, OWN_PID)
    return answer(bytes(code), architecture.numbers[name], architecture.audit_arch, arguments)


def test_every_number_is_answered_as_the_policy_says(its_policy, architecture):
    code = seccomp.build(its_policy, architecture).code
    names = {number: name for name, number in architecture.numbers.items()}
    for number in range(700):
        name = names.get(number)
        rule = its_policy.allowed.get(name)
        if rule is not None and rule.when:
            continue
        expected = ENOSYS
        if rule is not None:
            expected = ALLOW
        elif name in its_policy.refused:
            expected = its_policy.refused[name]
        elif name in its_policy.deadly:
            expected = KILL
        assert answer(code, number, architecture.audit_arch) == expected, (number, name)


def test_no_call_stands_in_two_lists(its_policy):
    allowed, refused, deadly = set(its_policy.allowed), set(its_policy.refused), its_policy.deadly
    assert not allowed & refused
    assert not allowed & deadly
    assert not refused & deadly


def test_every_call_of_the_policies_has_a_number_on_x86_64(its_policy):
    assert {*its_policy.allowed, *its_policy.refused, *its_policy.deadly} <= set(numbers.X86_64.numbers)


def test_arm64_lacks_only_the_calls_that_it_never_had():
    assert set(numbers.X86_64.numbers) - set(numbers.AARCH64.numbers) == {
        *(
            "access",
            "alarm",
            "chmod",
            "creat",
            "dup2",
            "epoll_wait",
            "fork",
            "ioperm",
            "iopl",
            "link",
            "lstat",
            "mkdir",
        ),
        *("modify_ldt", "open", "pause", "pipe", "poll", "readlink", "rename", "rmdir", "select", "stat", "symlink"),
        *("time", "unlink", "vfork"),
    }


def test_another_architecture_s_table_is_no_way_in(its_policy, architecture):
    code = seccomp.build(its_policy, architecture).code
    for other in (0x40000003, 0x40000028, *(a.audit_arch for a in ARCHITECTURES if a is not architecture)):
        assert answer(code, architecture.numbers["read"], other) == KILL


def test_x32_numbers_are_no_way_in(its_policy):
    code = seccomp.build(its_policy, numbers.X86_64).code
    for number in (0, 39, 59, 520):
        assert answer(code, 0x40000000 | number, numbers.X86_64.audit_arch) == KILL


def test_clone3_is_unknown_so_that_threads_come_by_clone(its_policy, architecture):
    assert answer(seccomp.build(its_policy, architecture).code, 435, architecture.audit_arch) == ENOSYS


def test_memory_is_never_executable_for_restricted_code(architecture):
    for protection in (4, 5, 7, 0x1_0000_0004):
        assert judge(allow_list.RESTRICTED, architecture, "mmap", 0, 4096, protection, 0x22, -1, 0) == EPERM
        assert judge(allow_list.RESTRICTED, architecture, "mmap", 0, 4096, protection, 0x02, 3, 0) == EPERM
        assert judge(allow_list.RESTRICTED, architecture, "mprotect", 0, 4096, protection) == EPERM
    assert judge(allow_list.RESTRICTED, architecture, "mmap", 0, 4096, 3, 0x22, -1, 0) == ALLOW
    assert judge(allow_list.RESTRICTED, architecture, "mprotect", 0, 4096, 1) == ALLOW


def test_full_python_maps_code_from_files_only_and_never_writable(architecture):
    assert judge(allow_list.PROCESS, architecture, "mmap", 0, 4096, 5, 0x02, 3, 0) == ALLOW
    assert judge(allow_list.PROCESS, architecture, "mmap", 0, 4096, 7, 0x02, 3, 0) == EPERM
    assert judge(allow_list.PROCESS, architecture, "mmap", 0, 4096, 5, 0x22, -1, 0) == EPERM
    assert judge(allow_list.PROCESS, architecture, "mprotect", 0, 4096, 5) == EPERM


def test_threads_are_for_full_python_and_processes_for_nobody(architecture):
    glibc_thread, musl_thread, fork, user_namespace = 0x3D0F00, 0x7D0F00, 0x1200011, 0x10000011
    assert judge(allow_list.RESTRICTED, architecture, "clone", glibc_thread) == EPERM
    assert judge(allow_list.PROCESS, architecture, "clone", glibc_thread) == ALLOW
    assert judge(allow_list.PROCESS, architecture, "clone", musl_thread) == ALLOW
    for flags in (fork, user_namespace, 17, glibc_thread | 0x20000):
        assert judge(allow_list.PROCESS, architecture, "clone", flags) == EPERM


def test_signals_and_limits_concern_the_worker_alone(its_policy, architecture):
    for call in ("kill", "tgkill"):
        assert judge(its_policy, architecture, call, OWN_PID, 6, 6) == ALLOW
        for pid in (1, 0, -1, OWN_PID + 1, -OWN_PID):
            assert judge(its_policy, architecture, call, pid, 9, 9) == EPERM
    assert judge(its_policy, architecture, "prlimit64", 0, 7, 4096, 0) == ALLOW
    assert judge(its_policy, architecture, "prlimit64", OWN_PID, 7, 4096, 0) == ALLOW
    assert judge(its_policy, architecture, "prlimit64", 1, 7, 0, 4096) == EPERM


def test_files_open_for_reading_only_in_restricted_code(architecture):
    for flags in (0o1, 0o2, 0o101, 0o1000, 0o2000, 0o20200000):
        assert judge(allow_list.RESTRICTED, architecture, "openat", -100, 4096, flags) == seccomp.refuse(errno.EACCES)
    assert judge(allow_list.RESTRICTED, architecture, "openat", -100, 4096, 0o2000000) == ALLOW


def test_descriptors_send_signals_to_nobody(its_policy, architecture):
    f_setown, f_setsig, f_getfl = 8, 10, 3
    assert judge(its_policy, architecture, "fcntl", 3, f_setown, 1) == EPERM
    assert judge(its_policy, architecture, "fcntl", 3, f_setsig, 9) == EPERM
    assert judge(its_policy, architecture, "fcntl", 3, f_getfl) == ALLOW


def test_terminals_cannot_be_typed_into(its_policy, architecture):
    tiocsti, tioclinux, tcgets = 0x5412, 0x541C, 0x5401
    assert judge(its_policy, architecture, "ioctl", 0, tiocsti) == seccomp.refuse(errno.ENOTTY)
    assert judge(its_policy, architecture, "ioctl", 0, 1 << 32 | tiocsti) == seccomp.refuse(errno.ENOTTY)
    assert judge(its_policy, architecture, "ioctl", 0, tioclinux) == seccomp.refuse(errno.ENOTTY)
    assert judge(its_policy, architecture, "ioctl", 0, tcgets) == ALLOW


def test_a_socket_pair_is_the_only_socket_and_reaches_nobody(architecture):
    af_unix, af_inet = 1, 2
    assert judge(allow_list.PROCESS, architecture, "socketpair", af_unix, 1, 0, 4096) == ALLOW
    assert judge(allow_list.PROCESS, architecture, "socketpair", af_inet, 1, 0, 4096) == EPERM
    assert judge(allow_list.PROCESS, architecture, "sendto", 3, 4096, 1, 0, 0, 0) == ALLOW
    assert judge(allow_list.PROCESS, architecture, "sendto", 3, 4096, 1, 0, 4096, 16) == EPERM
    assert judge(allow_list.PROCESS, architecture, "sendto", 3, 4096, 1, 0, 1 << 32, 16) == EPERM
    assert judge(allow_list.PROCESS, architecture, "sendmsg", 3, 4096, 0) == EPERM
    assert judge(allow_list.RESTRICTED, architecture, "socketpair", af_unix, 1, 0, 4096) == EPERM


def test_no_out_of_band_data_and_no_unusual_flag_goes_through_a_socket_pair(architecture):
    msg_oob, msg_peek, msg_dontwait, msg_nosignal = 1, 2, 0x40, 0x4000
    for flags in (0, msg_peek, msg_dontwait | msg_nosignal):
        assert judge(allow_list.PROCESS, architecture, "sendto", 3, 4096, 1, flags, 0, 0) == ALLOW
        assert judge(allow_list.PROCESS, architecture, "recvfrom", 3, 4096, 1, flags, 0, 0) == ALLOW
    for flags in (msg_oob, msg_oob | msg_peek, msg_oob | 1 << 32, 0x2000, 0x4000000, 0x20000000, 1 << 31):
        assert judge(allow_list.PROCESS, architecture, "sendto", 3, 4096, 1, flags, 0, 0) == EPERM
        assert judge(allow_list.PROCESS, architecture, "recvfrom", 3, 4096, 1, flags, 0, 0) == EPERM
    for call in ("sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg"):
        assert judge(allow_list.RESTRICTED, architecture, call, 3, 4096, msg_oob, msg_oob) == EPERM
    for call in ("sendmsg", "recvmsg", "sendmmsg", "recvmmsg"):
        assert judge(allow_list.PROCESS, architecture, call, 3, 4096, msg_oob, msg_oob) == EPERM


def test_nothing_tells_of_what_others_do_with_a_file_or_holds_them_up(its_policy, architecture):
    f_setlease, f_getlease, f_notify, f_setpipe_sz, f_add_seals = 1024, 1025, 1026, 1031, 1033
    for command in (f_setlease, f_getlease, f_notify, f_setpipe_sz, f_add_seals):
        assert judge(its_policy, architecture, "fcntl", 3, command, 0) == EPERM
    watching = {"x86_64": (253, 254, 294, 300, 301), "aarch64": (26, 27, 262, 263)}[architecture.name]
    for number in watching:  # inotify and fanotify
        assert answer(seccomp.build(its_policy, architecture).code, number, architecture.audit_arch) == ENOSYS


def test_prctl_looks_but_changes_nothing(its_policy, architecture):
    for option in (1, 4, 8, 22, 24, 28, 38, 47, 53, 59):
        assert judge(its_policy, architecture, "prctl", option, 1) == EPERM
    for option in (3, 21, 39):
        assert judge(its_policy, architecture, "prctl", option) == ALLOW


def test_each_allowed_call_says_why(its_policy):
    assert all(rule.why for rule in its_policy.allowed.values())


def test_the_parent_has_no_number(its_policy, architecture):
    number = {"x86_64": 110, "aarch64": 173}[architecture.name]
    assert answer(seccomp.build(its_policy, architecture).code, number, architecture.audit_arch) == ENOSYS


def test_the_filter_fits_the_kernel(its_policy, architecture):
    bpf_maxinsns = 4096
    assert len(seccomp.build(its_policy, architecture).code) // 8 < bpf_maxinsns
