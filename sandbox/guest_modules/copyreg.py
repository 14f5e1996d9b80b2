"""`copyreg` as guest code: how `pickle` writes objects of classes that were entered here."""

__all__ = ["constructor", "dispatch_table", "pickle"]

dispatch_table = {}


def pickle(ob_type, pickle_function, constructor_ob=None):
    """Let `pickle_function` say how objects of a class are written: `(function, arguments)`."""
    if not callable(pickle_function):
        raise TypeError("reduction functions must be callable")
    dispatch_table[ob_type] = pickle_function


def constructor(object):
    """Do nothing but check that it can be called."""
    if not callable(object):
        raise TypeError("constructors must be callable")
