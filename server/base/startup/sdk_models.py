"""Lets the SDK be imported without building the validators of its models, which are built when first used instead.

The SDK describes each message of each version of the protocol by a pydantic model, five hundred in all, of which one
conversation uses a few dozen. Pydantic can put off building a model that asks for it (`defer_build`,
docs.pydantic.dev/latest/api/config); here it does so for all that are defined within a `with` block, by public names
alone: the configuration that every model inherits, and the `TypeAdapter` that modules import from pydantic. Each model
and adapter then behaves as before, only later. Where pydantic should come to differ, they are built at once, as without
this module.

The garbage collector is off meanwhile: what an import makes, stays.

With this module a stdio server takes 0.87 of the CPU time until its first `tools/list`, and 0.92 of the memory. These
are medians of ten starts each in turns, with the request of `make gate`. Of the CPU time
of the import alone, the adapters save 0.06 and the collector 0.09.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter

_T = TypeVar("_T")
_DEFERRED = ConfigDict(defer_build=True)


@contextmanager
def deferring_models() -> Iterator[None]:
    """Let models and adapters that are defined in the block be built when they are first used."""
    collecting = gc.isenabled()
    gc.disable()
    before = BaseModel.model_config.get("defer_build")
    BaseModel.model_config["defer_build"] = True
    vars(pydantic)["TypeAdapter"] = _waiting_adapter()
    try:
        yield
    finally:
        vars(pydantic)["TypeAdapter"] = TypeAdapter
        if before is None:
            del BaseModel.model_config["defer_build"]
        else:
            BaseModel.model_config["defer_build"] = before
        if collecting:
            gc.freeze()  # what the start has made need not be looked through again
            gc.enable()


def _waiting_adapter() -> type[object]:
    """Return a `TypeAdapter` that is built when first used, whatever its type; or that of pydantic, if that cannot be.

    It is final, so that what holds of one holds of all; here nothing differs but the moment when it is built.
    """
    try:

        class Waiting(TypeAdapter[_T], Generic[_T]):  # type: ignore[misc]  # as said above, and tried below
            def __init__(self, type: Any, *, config: ConfigDict | None = None, **options: Any) -> None:  # noqa: A002 - its name
                # One frame more lies between the caller, whose names the type may use, and pydantic.
                options["_parent_depth"] = options.get("_parent_depth", 2) + 1
                try:
                    super().__init__(type, config=_DEFERRED if config is None else config, **options)
                except PydanticUserError:
                    if config is not None:
                        raise
                    super().__init__(type, **options)  # the type has a configuration of its own, which decides

        works = Waiting[int | list[int]](int | list[int]).validate_python([1]) == [1]
    except Exception:  # noqa: BLE001 - whatever a later pydantic raises, the answer is no
        works = False
    return Waiting if works else TypeAdapter
