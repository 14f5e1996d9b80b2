"""`inspect` for questions about the code's own objects. Nothing that gives frames, sources or raw attributes."""

# Python's own names and signatures.
# ruff: noqa: A002

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MappingProxyType, MethodDescriptorType
from typing import Any, cast

from ....guest.facade import Facade
from ....guest.ownership import is_guest_callable, is_guest_class
from ...classes import shown_type
from ...guards import guarded_dir, guarded_getattr, shown_annotation
from ...metaclasses import Governed, own_call
from ...names import ATTRIBUTE_METHODS
from ..private import copy_of
from .typing_ import evaluated

__all__ = [
    "BoundArguments",
    "Parameter",
    "Signature",
    "formatannotation",
    "get_annotations",
    "getdoc",
    "getfullargspec",
    "getmembers",
    "getmro",
    "isclass",
    "ismodule",
    "signature",
]  # fmt: skip


_copy = copy_of("inspect")
BoundArguments = _copy.BoundArguments
Parameter = _copy.Parameter
Signature = _copy.Signature


def _is_builtin(obj: object) -> bool:
    """Do what the real function does, without comparing: that would hand `type` to the object."""
    known = inspect.isbuiltin(obj) or inspect.ismethoddescriptor(obj) or obj is type or obj is object
    return known or isinstance(obj, _copy._NonUserDefinedCallables)


def _bound(descriptor: object, obj: object) -> object:
    """Do what the real function does (Python 3.13), without passing a descriptor the class of a class."""
    bind = None if isinstance(descriptor, type) else getattr(type(descriptor), "__get__", None)
    return descriptor if bind is None else bind(descriptor, obj, shown_type(type(obj)))


def _believed_of_c(read: Callable[..., Any]) -> Callable[..., Any]:
    """Read signatures from a text only where it is C's own.

    Defaults in it are evaluated in the variables of the module that the object names. What the code makes may hold any
    text and name any module: a class says its signature in the first line of its documentation.
    """

    def read_text(cls: type, obj: object, text: str, *options: object) -> Any:
        kind = type(obj)
        if not (issubclass(kind, _WRITTEN_IN_C) or (issubclass(kind, type) and not is_guest_class(cast("type", obj)))):
            raise ValueError("a signature cannot be given as a text here")
        return read(cls, obj, text, *options)

    return read_text


_WRITTEN_IN_C = (*_copy._NonUserDefinedCallables, MethodDescriptorType)
_READ_TEXT = "_signature_fromstr"
_OWN = {"_signature_is_builtin": _is_builtin, "_descriptor_get": _bound}
vars(_copy).update(_OWN | {_READ_TEXT: _believed_of_c(vars(_copy)[_READ_TEXT])})


def keep_comparisons() -> None:
    """Keep the real module, which looks at the classes of errors and tasks, from passing anything to guest objects."""
    vars(inspect).update(_OWN | {_READ_TEXT: _believed_of_c(vars(inspect)[_READ_TEXT])})


# The real one gives a proxy of what it keeps, and a proxy that is compared hands over what it stands for.
Signature.parameters = property(lambda self: MappingProxyType(dict(self._parameters)))


def _unevaluated(obj: object, *, eval_str: bool = False, **_options: object) -> dict[str, object]:
    if eval_str:
        raise NotImplementedError("this needs eval(), which is not available here")
    return dict(inspect.get_annotations(obj))  # type: ignore[arg-type]  # raises TypeError for other objects


_copy.get_annotations = _unevaluated  # type: ignore[attr-defined]  # from 3.14 on it is one of `annotationlib`, with the real `eval`


_user_method = vars(_copy)["_signature_get_user_defined_method"]
# How a class that is governed is called stands with its governor, not with its real class.
vars(_copy)["_signature_get_user_defined_method"] = lambda cls, name: (
    None if name == "__call__" and issubclass(cls, Governed) else _user_method(cls, name)
)
_from_callable = Signature.from_callable.__func__


def _signature_of(
    cls: type, obj: object, /, *, follow_wrapped: bool = True, eval_str: bool = False, **_options: object
) -> Any:
    """Return the `Signature` of a callable; of the annotations that lead on the text, wherever they come from."""
    if is_guest_callable(obj) or is_guest_class(type(obj)):
        declared = guarded_getattr(obj, "__signature__", None)  # Python's own look-up finds no name of the code's
        if type(declared) is Signature:
            return declared
        if declared is not None:
            raise TypeError(f"__signature__ must be a Signature, not {shown_type(type(declared)).__name__!r}")
    call = own_call(obj)
    if call is not None:
        return _signature_of(cls, call, follow_wrapped=follow_wrapped, eval_str=eval_str)
    found = _from_callable(cls, obj, follow_wrapped=follow_wrapped, eval_str=eval_str)
    parameters = [
        parameter.replace(annotation=shown_annotation(parameter.annotation))
        if parameter.annotation is not Parameter.empty
        else parameter
        for parameter in found.parameters.values()
    ]
    returned = found.return_annotation
    return found.replace(
        parameters=parameters,
        return_annotation=returned if returned is Signature.empty else shown_annotation(returned),
    )


Signature.from_callable = classmethod(_signature_of)


def signature(obj: Callable[..., object], *, follow_wrapped: bool = True, **_options: object) -> Any:
    """Return the `Signature` of a callable, string annotations as strings. Raises TypeError or ValueError."""
    return Signature.from_callable(obj, follow_wrapped=follow_wrapped)


def _shown_annotations(annotations: dict[str, Any]) -> dict[str, object]:
    return {name: shown_annotation(hint) for name, hint in annotations.items()}


def getfullargspec(func: Callable[..., object]) -> Any:
    """Return the names and defaults of a function's parameters."""
    found = _copy.getfullargspec(func)
    return found._replace(annotations=_shown_annotations(found.annotations))


def get_annotations(
    obj: object,
    *,
    globals: dict[str, Any] | None = None,
    locals: dict[str, Any] | None = None,
    eval_str: bool = False,
) -> dict[str, object]:
    """Return the annotations of a class or function; with `eval_str`, strings are evaluated under the dialect."""
    annotations = _shown_annotations(inspect.get_annotations(obj) if isinstance(obj, type) or callable(obj) else {})
    if not eval_str:
        return annotations
    return {name: evaluated(hint, globals, locals) for name, hint in annotations.items()}


def getmembers(obj: object, predicate: Callable[[object], object] | None = None) -> list[tuple[str, object]]:
    """Return `(name, value)` of every attribute that code may read."""
    found = []
    for name in guarded_dir(obj):
        if name in ATTRIBUTE_METHODS:  # the guards' own forms of them, which are functions
            continue
        try:
            value = guarded_getattr(obj, name)
        except AttributeError:
            continue
        if predicate is None or predicate(value):
            found.append((name, value))
    return found


def getmro(cls: type) -> object:
    """Return the classes that a class of the code's own derives from, in the order in which they are searched."""
    return guarded_getattr(cls, "__mro__")


def formatannotation(annotation: object, base_module: str | None = None) -> str:
    """Return an annotation as a signature shows it."""
    if isinstance(annotation, type):
        own = annotation.__module__ in {"builtins", base_module}
        return annotation.__qualname__ if own else f"{annotation.__module__}.{annotation.__qualname__}"
    return repr(annotation).replace("typing.", "")


def getdoc(obj: object) -> str | None:
    """Return an object's documentation, without its indentation."""
    text = getattr(obj, "__doc__", None)
    if text is None and isinstance(obj, type) and is_guest_class(obj):
        text = next((base.__doc__ for base in obj.__mro__[1:] if base.__doc__ and is_guest_class(base)), None)
    return inspect.cleandoc(text) if isinstance(text, str) else None


def isclass(obj: object) -> bool:
    """Return whether `obj` is a class."""
    return isinstance(obj, type)


def ismodule(obj: object) -> bool:
    """Return whether `obj` is a module."""
    return isinstance(obj, Facade)
