"""`types`: plain types as they are; those whose constructors lead into the interpreter only test instances."""

from __future__ import annotations

import types
from collections.abc import Callable

from ...classes import OPAQUE
from ..facade import Module

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
