"""A stand-in for hypothesis: a test that asks for examples needs more than asserts, `raises` and `parametrize`.

Such a test is left out. The others of its module run.
"""

import pytest


class Anything:
    """Strategies, settings and whatever else is made of hypothesis where tests are defined."""

    def __getattr__(self, name):
        return self

    def __call__(self, *arguments, **keywords):
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __or__(self, other):
        return self


def given(*arguments, **keywords):
    """Leave a test out."""

    def mark(function):
        def needs_examples():
            raise pytest.LeftOut("hypothesis")

        return needs_examples

    return mark


def __getattr__(name):
    return Anything()
