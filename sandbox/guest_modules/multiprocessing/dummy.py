"""`multiprocessing.dummy`: the same as `multiprocessing`, whose processes are threads anyway."""

from multiprocessing import *  # noqa: F403
