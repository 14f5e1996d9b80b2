"""Doctests of the code's own docstrings."""

from __future__ import annotations

from ...guest_code import run


def test_examples_pass_as_python_compares_them() -> None:
    source = '''
    """A module.

    >>> 1 + 1
    2
    """
    import doctest
    class NotYet(Exception): ...
    def f(x):
        """
        >>> f(2)
        4
        >>> f("a")
        Traceback (most recent call last):
            ...
        TypeError: can't multiply sequence by non-int of type 'str'
        >>> for i in range(2):
        ...     print(i)
        0
        1
        >>> list(range(20))  # doctest: +ELLIPSIS
        [0, 1, ..., 19]
        >>> print("a    b")  # doctest: +NORMALIZE_WHITESPACE
        a b
        >>> print("x\\\\n\\\\ny")
        x
        <BLANKLINE>
        y
        >>> raise NotYet("details differ")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        NotYet: others
        >>> 1 / 0  # doctest: +SKIP
        >>> from decimal import Decimal
        >>> Decimal("x")
        Traceback (most recent call last):
        decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]
        >>> y = f(3); y
        9
        >>> None
        """
        return x * x
    class K:
        """
        >>> K().m
        1
        """
        @property
        def m(self):
            """
            >>> K().m + 1
            2
            """
            return 1
        @staticmethod
        def s():
            """
            >>> K.s()
            3
            """
            return 3
    __test__ = {"more": ">>> f(1)\\n1"}
    tuple(doctest.testmod())
    '''
    ran = run(source)
    assert ran.output == ""
    assert ran.value == (0, 16)


def test_an_example_runs_under_the_dialect_and_on_variables_of_its_own_and_its_failure_is_told() -> None:
    source = '''
    import doctest
    n = 5
    def f(x):
        """
        >>> n
        5
        >>> n = 6
        >>> import subprocess
        >>> f.__globals__
        >>> f(1)
        2
        """
        return x
    [*doctest.testmod(), n]
    '''
    ran = run(source)
    assert ran.value == [3, 5, 5]
    told = 'File "<code>", line 11, in __main__.f\nFailed example:\n    f(1)\nExpected:\n    2\nGot:\n    1\n'
    assert told in ran.output
    assert "subprocess" in ran.output
