"""Strategies, of which none gives an example."""

from hypothesis import Anything


def __getattr__(name):
    return Anything()
