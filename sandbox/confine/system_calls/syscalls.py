"""System call numbers of each machine, name by name. Written by `generate_numbers`; not to be edited."""

TABLES = {
    "x86_64": """
        read=0 write=1 readv=19 writev=20 pread64=17 close=3 lseek=8 fstat=5 stat=4 lstat=6 newfstatat=262 statx=332
        access=21 faccessat=269 faccessat2=439 readlink=89 readlinkat=267 getdents64=217 getcwd=79 dup=32 fcntl=72
        ioctl=16 poll=7 ppoll=271 select=23 pselect6=270 mmap=9 mprotect=10 munmap=11 mremap=25 madvise=28 brk=12
        clock_gettime=228 clock_getres=229 clock_nanosleep=230 nanosleep=35 gettimeofday=96 time=201 getrandom=318
        getpid=39 gettid=186 getuid=102 geteuid=107 getgid=104 getegid=108 getresuid=118 getresgid=120 getgroups=115
        capget=125 prctl=157 uname=63 getrusage=98 times=100 sched_yield=24 sched_getaffinity=204 getrlimit=97
        setrlimit=160 prlimit64=302 rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 sigaltstack=131 kill=62
        tgkill=234 restart_syscall=219 futex=202 set_robust_list=273 rseq=334 exit=60 exit_group=231 open=2
        openat=257 creat=85 pwrite64=18 preadv=295 pwritev=296 preadv2=327 pwritev2=328 ftruncate=77 truncate=76
        fsync=74 fdatasync=75 flock=73 msync=26 mkdir=83 mkdirat=258 rmdir=84 unlink=87 unlinkat=263 rename=82
        renameat=264 renameat2=316 link=86 linkat=265 symlink=88 symlinkat=266 chmod=90 fchmod=91 fchmodat=268
        utimensat=280 copy_file_range=326 sendfile=40 chdir=80 fchdir=81 umask=95 dup2=33 dup3=292 pipe=22 pipe2=293
        clone=56 set_tid_address=218 get_robust_list=274 membarrier=324 getcpu=309 sched_getparam=143
        sched_getscheduler=145 sched_get_priority_max=146 sched_get_priority_min=147 sched_setaffinity=203
        epoll_create1=291 epoll_ctl=233 epoll_wait=232 epoll_pwait=281 eventfd2=290 socketpair=53 sendto=44
        recvfrom=45 shutdown=48 alarm=37 setitimer=38 getitimer=36 pause=34 rt_sigpending=127 rt_sigtimedwait=128
        rt_sigsuspend=130 wait4=61 waitid=247 fork=57 vfork=58 memfd_create=319 socket=41 connect=42 bind=49
        listen=50 accept=43 accept4=288 sendmsg=46 recvmsg=47 sendmmsg=307 recvmmsg=299 getxattr=191 lgetxattr=192
        fgetxattr=193 setxattr=188 lsetxattr=189 fsetxattr=190 listxattr=194 llistxattr=195 flistxattr=196 acct=163
        add_key=248 adjtimex=159 bpf=321 chroot=161 clock_adjtime=305 clock_settime=227 delete_module=176 execve=59
        execveat=322 finit_module=313 fsconfig=431 fsmount=432 fsopen=430 fspick=433 init_module=175
        io_uring_enter=426 io_uring_register=427 io_uring_setup=425 ioperm=173 iopl=172 kcmp=312 kexec_file_load=320
        kexec_load=246 keyctl=250 modify_ldt=154 mount=165 mount_setattr=442 move_mount=429 name_to_handle_at=303
        open_by_handle_at=304 open_tree=428 perf_event_open=298 personality=135 pidfd_getfd=438 pivot_root=155
        process_madvise=440 process_vm_readv=310 process_vm_writev=311 ptrace=101 quotactl=179 reboot=169
        request_key=249 seccomp=317 setdomainname=171 sethostname=170 setns=308 settimeofday=164 swapoff=168
        swapon=167 syslog=103 umount2=166 unshare=272 userfaultfd=323 close_range=436 capset=126
        landlock_create_ruleset=444 landlock_add_rule=445 landlock_restrict_self=446
    """,
    "aarch64": """
        read=63 write=64 readv=65 writev=66 pread64=67 close=57 lseek=62 fstat=80 newfstatat=79 statx=291
        faccessat=48 faccessat2=439 readlinkat=78 getdents64=61 getcwd=17 dup=23 fcntl=25 ioctl=29 ppoll=73
        pselect6=72 mmap=222 mprotect=226 munmap=215 mremap=216 madvise=233 brk=214 clock_gettime=113
        clock_getres=114 clock_nanosleep=115 nanosleep=101 gettimeofday=169 getrandom=278 getpid=172 gettid=178
        getuid=174 geteuid=175 getgid=176 getegid=177 getresuid=148 getresgid=150 getgroups=158 capget=90 prctl=167
        uname=160 getrusage=165 times=153 sched_yield=124 sched_getaffinity=123 getrlimit=163 setrlimit=164
        prlimit64=261 rt_sigaction=134 rt_sigprocmask=135 rt_sigreturn=139 sigaltstack=132 kill=129 tgkill=131
        restart_syscall=128 futex=98 set_robust_list=99 rseq=293 exit=93 exit_group=94 openat=56 pwrite64=68
        preadv=69 pwritev=70 preadv2=286 pwritev2=287 ftruncate=46 truncate=45 fsync=82 fdatasync=83 flock=32
        msync=227 mkdirat=34 unlinkat=35 renameat=38 renameat2=276 linkat=37 symlinkat=36 fchmod=52 fchmodat=53
        utimensat=88 copy_file_range=285 sendfile=71 chdir=49 fchdir=50 umask=166 dup3=24 pipe2=59 clone=220
        set_tid_address=96 get_robust_list=100 membarrier=283 getcpu=168 sched_getparam=121 sched_getscheduler=120
        sched_get_priority_max=125 sched_get_priority_min=126 sched_setaffinity=122 epoll_create1=20 epoll_ctl=21
        epoll_pwait=22 eventfd2=19 socketpair=199 sendto=206 recvfrom=207 shutdown=210 setitimer=103 getitimer=102
        rt_sigpending=136 rt_sigtimedwait=137 rt_sigsuspend=133 wait4=260 waitid=95 memfd_create=279 socket=198
        connect=203 bind=200 listen=201 accept=202 accept4=242 sendmsg=211 recvmsg=212 sendmmsg=269 recvmmsg=243
        getxattr=8 lgetxattr=9 fgetxattr=10 setxattr=5 lsetxattr=6 fsetxattr=7 listxattr=11 llistxattr=12
        flistxattr=13 acct=89 add_key=217 adjtimex=171 bpf=280 chroot=51 clock_adjtime=266 clock_settime=112
        delete_module=106 execve=221 execveat=281 finit_module=273 fsconfig=431 fsmount=432 fsopen=430 fspick=433
        init_module=105 io_uring_enter=426 io_uring_register=427 io_uring_setup=425 kcmp=272 kexec_file_load=294
        kexec_load=104 keyctl=219 mount=40 mount_setattr=442 move_mount=429 name_to_handle_at=264
        open_by_handle_at=265 open_tree=428 perf_event_open=241 personality=92 pidfd_getfd=438 pivot_root=41
        process_madvise=440 process_vm_readv=270 process_vm_writev=271 ptrace=117 quotactl=60 reboot=142
        request_key=218 seccomp=277 setdomainname=162 sethostname=161 setns=268 settimeofday=170 swapoff=225
        swapon=224 syslog=116 umount2=39 unshare=97 userfaultfd=282 close_range=436 capset=91
        landlock_create_ruleset=444 landlock_add_rule=445 landlock_restrict_self=446
    """,
}
