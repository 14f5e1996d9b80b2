"""Security boundary: with whose sign-in a run calls an upstream server, and the user's sign-in where there is none.

A user is asked once in a run about each server. Neither the link nor anything that it gives reaches the code: that sees
a `ToolError`, or the answer of its call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ....sandbox.errors import HostCallError
from ....tools_registry.configuration import ServerConfig, SignInOf
from ....tools_registry.errors import SignInFailed, SignInNeeded
from ....tools_registry.names import test_of
from ....tools_registry.sign_in.owners import OPERATOR, SignInOwner
from ...base.errors import RequestRefused
from ...base.identity import Right
from ...governance.caller import NobodyAnswers, NoMoreQuestions, OpenLink
from ...governance.sign_ins.signing_in import PATH, asked_sign_in, signed_in_here
from .broker import Calls, failed

if TYPE_CHECKING:
    from ...governance.sign_ins.sign_ins import SignIns
    from ..upstream_tools.registry import Registry

T = TypeVar("T")


async def with_sign_in(
    registry: Registry, calls: Calls, server: ServerConfig, send: Callable[[SignInOwner], Awaitable[T]]
) -> T:
    """Return what `send` gives with the sign-in that a server wants of this caller, asking the user if need be.

    A call that the server refused for its sign-in was not taken, and is sent a second time after the user signed in.
    Raises what `send` raises, `RequestRefused`, and `HostCallError` where there is no sign-in.
    """
    if server.sign_in is SignInOf.OPERATOR:
        return await _sent(calls, send, OPERATOR)
    sign_ins = registry.sign_ins
    if sign_ins is None:
        raise failed(
            f"The server {server.name!r} is called with the sign-in of its {server.sign_in}, and there is none here. "
            "Call it from code."
        )
    owner = _owner(sign_ins, calls, server)
    version = await _ready(sign_ins, calls, server, owner, after=None)
    try:
        return await _sent(calls, send, owner)
    except SignInNeeded:
        if await sign_ins.version(server, owner) == version and server.name in calls.approvals.signed_in:
            raise _not_taken(server) from None
        await _ready(sign_ins, calls, server, owner, after=version)
    try:
        return await _sent(calls, send, owner)
    except SignInNeeded:
        raise _not_taken(server) from None


async def signed_in(registry: Registry, calls: Calls, server: ServerConfig) -> None:
    """Ensure the sign-in that a call needs before it changes anything. Raises as `with_sign_in`."""
    if server.sign_in is not SignInOf.OPERATOR and registry.sign_ins is not None:
        owner = _owner(registry.sign_ins, calls, server)
        await _ready(registry.sign_ins, calls, server, owner, after=None)


def _owner(sign_ins: SignIns, calls: Calls, server: ServerConfig) -> SignInOwner:
    try:
        return sign_ins.owner(server, calls.caller)
    except RequestRefused as error:
        raise failed(str(error)) from error


async def _sent(calls: Calls, send: Callable[[SignInOwner], Awaitable[T]], owner: SignInOwner) -> T:
    with calls.waits.for_server():
        return await send(owner)


async def _ready(
    sign_ins: SignIns, calls: Calls, server: ServerConfig, owner: SignInOwner, *, after: int | None
) -> int | None:
    """Ensure a sign-in later than `after`, which the server refused; return its version."""
    if server.token_exchange is not None:
        try:
            with calls.waits.for_server():
                await sign_ins.exchange(server, calls.caller, anew=after is not None)
        except SignInNeeded as error:
            raise failed(str(error)) from None
        return 0
    found = await sign_ins.version(server, owner)
    if found is not None and found != after:
        return found
    async with calls.approvals.signing_in(server.name):
        found = await sign_ins.version(server, owner)
        if found is None or found == after:  # no other call of the run had the user sign in meanwhile
            await _sign_in(sign_ins, calls, server, owner)
            found = await sign_ins.version(server, owner)
        return found


async def _sign_in(sign_ins: SignIns, calls: Calls, server: ServerConfig, owner: SignInOwner) -> None:
    """Ask the user to sign in. Raises `HostCallError` where that cannot be, or did not happen."""
    caller, name = calls.caller, server.name
    if server.sign_in is SignInOf.TENANT and not caller.identity.may(Right.ADMIN):
        raise failed(
            f"The server {name!r} is called with the tenant's sign-in, and there is none that it takes. Have somebody "
            "sign in whose token has the scope admin."
        )
    open_link = caller.open_link
    if open_link is None:
        raise failed(
            f"The server {name!r} wants a sign-in of {_whose(server)}, and this client cannot have its user open a "
            f"link. Use a client that can (URL elicitation), or have the operator run {test_of(name)} for its user."
        )
    if name in calls.approvals.signed_in:
        raise failed(
            f"The user was asked in this run to sign in to the server {name!r}. Run the code again to ask again."
        )
    calls.approvals.signed_in.add(name)
    try:
        with calls.waits.for_user():
            await _asked(sign_ins, calls, server, owner, open_link)
    except (NobodyAnswers, NoMoreQuestions):
        raise failed(f"Nobody answered whether to sign in to the server {name!r}. Run the code again.") from None
    except (SignInNeeded, SignInFailed) as error:
        raise failed(str(error)) from None


async def _asked(
    sign_ins: SignIns, calls: Calls, server: ServerConfig, owner: SignInOwner, open_link: OpenLink
) -> None:
    caller = calls.caller
    text = (
        f"The server {server.name!r} wants a sign-in of {_whose(server)}: code that runs here then uses that "
        "account. Open the page of the sign-in?"
    )

    async def show(address: str) -> None:
        if not await open_link(text, address):
            raise SignInNeeded(f"The user did not sign in to the server {server.name!r}. Do without it, or ask them.")

    if not caller.origin:
        await signed_in_here(sign_ins, server, owner, show)
        return
    asked = await asked_sign_in(sign_ins, server, owner, caller)
    await show(f"{caller.origin}{PATH}{sign_ins.place}{asked.link}")
    await asked.ended()


def _not_taken(server: ServerConfig) -> HostCallError:
    return failed(
        f"The server {server.name!r} does not take the sign-in that was made for it. Ask its operator; to sign in "
        "again, run the code again."
    )


def _whose(server: ServerConfig) -> str:
    return "the tenant" if server.sign_in is SignInOf.TENANT else "its caller"
