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


def test_failures_are_told_like_pythons_own() -> None:
    source = '''
    import doctest
    def f(x):
        """
        >>> f(1)
        2
        >>> f(None)
        0
        """
        return x + 0
    tuple(doctest.testmod())
    '''
    ran = run(source)
    assert ran.value == (2, 2)
    divider = "*" * 70
    assert ran.output.startswith(
        f'{divider}\nFile "<code>", line 5, in __main__.f\nFailed example:\n    f(1)\nExpected:\n    2\nGot:\n    1\n{divider}\n'
    )
    assert "Exception raised:\n    Traceback (most recent call last):" in ran.output
    assert "TypeError: unsupported operand" in ran.output
    assert ran.output.endswith(" had failures:\n   2 of   2 in __main__.f\n***Test Failed*** 2 failures.\n")


def test_examples_do_not_change_the_codes_variables_and_see_them() -> None:
    source = '''
    import doctest
    n = 5
    def f():
        """
        >>> n
        5
        >>> n = 6
        >>> n
        6
        """
    doctest.testmod()
    n
    '''
    assert run(source).value == 5


def test_an_example_runs_under_the_dialect() -> None:
    source = '''
    import doctest
    def f():
        """
        >>> import subprocess
        >>> f.__globals__
        """
    tuple(doctest.testmod())
    '''
    ran = run(source)
    assert ran.value == (2, 2)
    assert "subprocess" in ran.output


def test_verbose_tells_every_example_and_run_docstring_examples_takes_one_object() -> None:
    source = '''
    import doctest
    def f(x):
        """
        >>> f(1)
        1
        """
        return x
    doctest.testmod(verbose=True)
    doctest.run_docstring_examples(f, globals(), verbose=True, name="f")
    doctest.run_docstring_examples(">>> 1\\n2\\n", {}, name="text")
    '''
    output = run(source).output
    assert "Trying:\n    f(1)\nExpecting:\n    1\nok\n" in output
    assert "Test passed.\n" in output
    assert "Line 1, in text\n" in output
