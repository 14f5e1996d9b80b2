"""`abc` with a base class of its own and the metaclass that class statements accept."""

from __future__ import annotations

import abc

from ...classes import abstract_metaclass as ABCMeta  # noqa: N812 - it stands for that class

__all__ = ["ABC", "ABCMeta"]


class ABC(metaclass=abc.ABCMeta):  # noqa: B024 - nothing is abstract in it, as in Python's own
    """A class to inherit from where methods are marked with `abstractmethod`."""

    __slots__ = ()
