"""`concurrent.futures.process`: the pool of processes runs its work in threads of the worker."""

from concurrent.futures._base import BrokenExecutor
from concurrent.futures.thread import ThreadPoolExecutor

EXTRA_QUEUED_CALLS = 1


class BrokenProcessPool(BrokenExecutor):
    """What is raised of a pool whose processes have died; here none does."""


class ProcessPoolExecutor(ThreadPoolExecutor):
    """An executor whose work runs in threads, since the worker is one process."""

    def __init__(self, max_workers=None, mp_context=None, initializer=None, initargs=(), *, max_tasks_per_child=None):
        super().__init__(max_workers, "ProcessPoolExecutor", initializer, initargs)
