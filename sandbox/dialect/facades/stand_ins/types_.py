"""`types`: plain types as they are; those whose constructors lead into the interpreter only test instances."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from ....guest.facade import Module
from ...classes import OPAQUE, type_of
from ...names import given

__all__ = [
    "AsyncGeneratorType",
    "BuiltinFunctionType",
    "BuiltinMethodType",
    "CodeType",
    "CoroutineType",
    "FrameType",
    "FunctionType",
    "GeneratorType",
    "LambdaType",
    "MethodType",
    "ModuleType",
    "TracebackType",
    "new_class",
]

FunctionType = LambdaType = OPAQUE[types.FunctionType]
BuiltinFunctionType = BuiltinMethodType = OPAQUE[types.BuiltinFunctionType]
CodeType = OPAQUE[types.CodeType]
FrameType = OPAQUE[types.FrameType]
ModuleType = Module
GeneratorType = OPAQUE[types.GeneratorType]
CoroutineType = OPAQUE[types.CoroutineType]
AsyncGeneratorType = OPAQUE[types.AsyncGeneratorType]
TracebackType = OPAQUE[types.TracebackType]
MethodType: Callable[..., object] = types.MethodType
"""Binding a function to an object is what attribute access does all the time."""


def new_class(
    name: str,
    bases: tuple[object, ...] = (),
    kwds: Mapping[str, object] | None = None,
    exec_body: Callable[[dict[str, object]], object] | None = None,
) -> object:
    """Make a class as `type(name, bases, body)` or its metaclass does; `exec_body` fills the body."""
    keywords = {given(key, "a keyword of a class"): value for key, value in dict(kwds or {}).items()}
    metaclass: Any = keywords.pop("metaclass", type_of)
    body: dict[str, object] = {}
    if exec_body is not None:
        exec_body(body)
    return metaclass(name, bases, body, **keywords)
