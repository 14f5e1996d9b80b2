"""The host functions of the vault: what the code's `sanitize_pii` and `restore_pii` call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....workspace.errors import NotFound
from ....workspace.run_files import HERE
from ....workspace.store import Workspace
from ...base.errors import ServerError
from ...privacy.gates.read_gate import learn_file, learn_path
from ...privacy.privacy import Privacy
from ...privacy.tokens.parts import CHARS_MAX, Text, Tree
from .broker import Calls, host_function
from .file_calls import files_of

FIGURE = "figure"
_LONGEST = {"content": CHARS_MAX}


@dataclass(frozen=True, slots=True)
class PrivacyCalls:
    """Answers for the vault."""

    privacy: Privacy
    workspace: Workspace

    @host_function(of_files=True)
    async def learn_path(self, calls: Calls, *, filename: str) -> None:
        """Learn what is in a file or a folder that the code is about to read by itself."""
        if not self.privacy.filters:
            return
        scope, tokens = calls.caller.scope, calls.run_tokens
        held = calls.attachments.held(filename.removeprefix(f"{HERE}/"))
        try:
            with _refused("PermissionError", "The file cannot be read here. "):
                if held is not None:
                    await learn_file(self.privacy, scope, BytesIO(held), run_tokens=tokens)
                    return
                files, known = files_of(calls, self.workspace), calls.outermost.learned
                await learn_path(self.privacy, scope, files, filename, known, run_tokens=tokens)
        except NotFound:
            return  # full Python made it by itself, out of what it had read before

    @host_function(of_files=True)
    async def learn_rows(self, calls: Calls, *, rows: list[Json]) -> None:
        """Learn rows of a table that only a library of the worker reads."""
        if self.privacy.filters:
            with _refused("PermissionError", "The file cannot be read here. "):
                await self.privacy.learn(calls.caller.scope, rows, calls.run_tokens)

    @host_function()
    async def hide_labels(self, calls: Calls, *, texts: list[Json]) -> Json:
        """Return the texts of a figure with tokens in them where everything is filtered, else None."""
        return await self._hidden(calls, Tree(texts), FIGURE) if self.privacy.filters else None

    @host_function(longest=_LONGEST)
    async def sanitize_pii(self, calls: Calls, *, content: Json) -> Json:
        """Return a content with tokens in it."""
        self._refuse_when_off()
        part = Text(content, exact=True) if isinstance(content, str) else Tree(content, exact=True)
        return await self._hidden(calls, part, "code")

    @host_function(longest=_LONGEST)
    async def restore_pii(self, calls: Calls, *, content: Json) -> Json:
        """Return a content with values in it."""
        self._refuse_when_off()
        with _refused("PermissionError"):
            return (await self.privacy.restored_for_code(calls.caller, content, run=calls.run_id)).content

    async def _hidden(self, calls: Calls, part: Text | Tree, destination: str) -> Json:
        with _refused("RuntimeError"):
            hidden = await self.privacy.hide(
                calls.caller.scope, (part,), destination=destination, run_tokens=calls.run_tokens, run=calls.run_id
            )
        return hidden.parts[0]

    def _refuse_when_off(self) -> None:
        if self.privacy.is_off:
            raise HostCallError(
                "Personal data is not hidden here: PRIVACY is off. Ask the operator for PRIVACY=tools or auto.",
                type="PermissionError",
            )


@contextmanager
def _refused(kind: str, what: str = "") -> Iterator[None]:
    """Raise an error of the server as a `HostCallError` of this kind, with `what` before its message."""
    try:
        yield
    except ServerError as error:
        raise HostCallError(f"{what}{error}", type=kind) from error
