"""Personal data that the model never sees: what the rest of the server asks of this folder.

Nothing is loaded before it is needed: the vault opens with the first value, detection with the first text.
"""

from __future__ import annotations

import asyncio
import io
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar, cast

from ...sandbox.job import Json
from ...skills_db import DATABASE_FILE
from ...skills_db.errors import SkillsDbError
from ...skills_db.vault_entries import VaultTotals
from ..base.database import Opening
from ..base.errors import HostWorkRefused, PrivacyFailed, RequestRefused
from ..base.host_work import Kind, charged, in_thread
from ..base.settings import PrivacyLevel as Mode
from ..base.settings import Settings
from ..base.telemetry import tracing
from ..governance.caller import Caller
from ..governance.policy.access import NO_POLICY, Decider
from ..governance.policy.restore_rulings import CODE, FILE, RestoreRulings
from ..governance.policy.restore_rulings import MODEL as TO_MODEL
from ..governance.scopes import is_brief, tokens_of
from .detectors import Detectors, judge_recognizers
from .packed import RUNS_MAX, Judge, without_packed
from .token_texts import TOKEN, mentions_in, tokens_in
from .tokens.audit_notes import AuditNotes, OnTypes, RecordLinks
from .tokens.known_values import KnownValues
from .tokens.parts import CHARS_MAX, Part, Text, Tree, is_longer, is_small, part_of
from .tokens.run_tokens import Brake, RunTokens

if TYPE_CHECKING:
    from ...skills_db.engine import Database
    from ...skills_db.vault import Vault
    from .tokens.restoring import Allows, Restored
    from .tokens.sanitizer import HiddenParts, KnownPlace, Sanitizer, Window

MODEL = "model"
UNREAD = "UNREAD"
"""What counts as a type where bytes could not be looked through."""
GUESSES_MAX = 1000
"""Tokens that a scope may ask for in vain, before it has to wait for `GUESSES_SECONDS`."""
GUESSES_SECONDS = 60.0
TRIALS_MAX = 1000
"""New values that a scope may bring itself, met in no tool and no file, before the next have tokens of their own.

That lasts for `TRIALS_SECONDS`, and twice as long each time that it was used up again.
"""
TRIALS_SECONDS = 60.0

_LEAST_IN_BYTES = 6
"""Shorter values stand in any bytes by chance."""
PURGE_SECONDS = 600.0
"""How often what has outlived its time is removed."""
_TEXTS_LOOKED_AT = 1000
_TEXT_CHARS_LOOKED_AT = 10_000
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FileText:
    """A text on its way to a file; how many of its tokens became values or were kept, and which are not known."""

    text: str
    restored: int = 0
    kept: int = 0
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TenantVault:
    """Whose vault it is, where it is a tenant's; `key` gives the operator's key, and blocks."""

    id: str
    operators_home: Path
    key: Callable[[], bytes]


class Privacy:
    """Hides personal data from the model and gives it to tools, for the scopes of one server.

    A scope is whose a run is; its tokens are those of `tokens_of`, which principals of one tenant have in common.
    """

    def __init__(
        self,
        settings: Settings,
        home: Path,
        database: Callable[[], Database],
        *,
        durable: bool = False,
        policy: Decider = NO_POLICY,
        tenant: TenantVault | None = None,
        on_types: OnTypes | None = None,
        detectors: Detectors | None = None,
    ) -> None:
        """Make it; with `durable`, for texts that are thrown away once hidden, no power cut loses a token.

        `policy` says of each caller which types may be restored where.
        Otherwise, where the vault is a file, one may take along the tokens of the last half second (`AuditNotes`).
        That of a `tenant` has a key derived from the operator's, whose file of recognizers it uses.
        `on_types` is called with what is noted in the audit. `detectors` are those of another with the same settings.
        """
        self.policy = policy
        self._operators = home if tenant is None else tenant.operators_home
        self._tenant = tenant
        if (
            detectors is None
            and tenant is None
            and settings.privacy_recognizers is not None
            and settings.privacy is not Mode.OFF
        ):
            judge_recognizers(settings, self._operators)
        self.detectors = detectors or Detectors(settings, self._operators)
        """What finds personal data."""
        self._closes_detectors = detectors is None
        self._durable = durable
        self._settings = settings
        self._home = home
        self._database = database
        self._opening = threading.Lock()
        self._vault = Opening(self._open_vault)
        self._key: bytes | None = None
        self._sanitizer: Sanitizer | None = None
        self._guesses = Brake(GUESSES_MAX, GUESSES_SECONDS)
        self._trials = Brake(TRIALS_MAX, TRIALS_SECONDS, grows=True)
        self._notes = AuditNotes(self.vault, on_types)
        self._links = RecordLinks(self.vault)
        self._brief: dict[str, None] = {}
        self._forgets: Callable[[str], bool] = lambda _scope: True
        self._loaded = False

    @property
    def is_off(self) -> bool:
        """Whether personal data is left alone (`PRIVACY=off`)."""
        return self._settings.privacy is Mode.OFF

    @property
    def filters(self) -> bool:
        """Whether all that goes to the model is filtered, and what comes from it restored on its way to tools."""
        return self._settings.privacy is Mode.AUTO

    @property
    def shows_values(self) -> bool:
        """Whether the model may have values back."""
        chosen = self._settings.restore_to_model
        return self._settings.privacy is Mode.TOOLS if chosen is None else chosen

    def new_run_tokens(self, scope: str) -> RunTokens:
        """Return the tokens of a run or request that begins: see `run_tokens`."""
        scope = tokens_of(scope)
        if self.shows_values:
            return RunTokens(scope)
        if self.filters:
            return RunTokens(scope, self._trials)
        return RunTokens(scope, values=KnownValues())

    def warm(self) -> None:
        """Load what hiding needs in a thread of its own, which the end of the process does not wait for."""
        threading.Thread(target=self._load, name="sealab-privacy", daemon=True).start()

    async def hide(
        self,
        scope: str,
        parts: Sequence[Part],
        *,
        kept: Sequence[Part] = (),
        destination: str | None = MODEL,
        run_tokens: RunTokens | None = None,
        run: str = "",
    ) -> HiddenParts:
        """Return the parts with tokens in place of what is personal; noted in the audit where a destination is said.

        After them come those that are only `kept`, which are not counted. `run_tokens` are those of the run or
        the request that wrote them, if one did.
        Raises `PrivacyFailed`: then nothing of them may be shown.
        """

        def work() -> HiddenParts:
            _refuse_too_long([*parts, *kept])
            if is_brief(scope) and self._forgets(scope):
                self._brief[scope] = None
            withheld: Counter[str] = Counter()
            judge = self._judge(tokens_of(scope), run_tokens, withheld)
            shown = [without_packed(part, judge) for part in parts]
            hidden = self.sanitizer().hide(tokens_of(scope), shown, kept, run_tokens=run_tokens)
            return replace(hidden, types=withheld + Counter(hidden.types)) if withheld else hidden

        hidden = await self._run([*parts, *kept], work)
        if destination is not None:
            self._notes.add(tokens_of(scope), "hide", destination, hidden.types, run=run)
        return hidden

    async def hide_value(self, scope: str, value: Json) -> Json:
        """Return a value with tokens in it. Raises `PrivacyFailed`."""
        if is_harmless(value):
            return value
        return (await self.hide(scope, (Tree(value),))).parts[0]

    async def kept_value(self, scope: str, value: Json) -> Json:
        """Return a value as it may be kept: with tokens in it where everything is filtered. Raises `PrivacyFailed`."""
        return await self.hide_value(scope, value) if self.filters else value

    async def hide_text(self, scope: str, text: str) -> str:
        """Return a text with tokens in it. Raises `PrivacyFailed`."""
        return cast("str", (await self.hide(scope, (Text(text),))).parts[0]) if text else text

    async def hide_window(self, scope: str, text: str, start: int, end: int) -> str:
        """Return `text[start:end]` with tokens in it; windows read one after the other are the whole text."""
        scope = tokens_of(scope)
        withheld: Counter[str] = Counter()

        def hide() -> Window:
            without_packed(Text(text), self._judge(scope, None, withheld))
            if withheld:
                raise PrivacyFailed(
                    f"The text holds bytes that may not be shown ({', '.join(sorted(withheld))}). Work on it in code."
                )
            return self.sanitizer().hide_window(scope, text, start, end)

        window = await self._run([Text(text)], hide)
        self._notes.add(scope, "hide", MODEL, window.types)
        return window.text

    async def types_packed(self, scope: str, file: IO[bytes]) -> Collection[str]:
        """Return the types of what is personal in a packed file that is not going to be shown.

        Raises `PrivacyFailed` where it could not be looked through.
        """
        return await self._run([Text("")], lambda: self._types_packed(tokens_of(scope), file, None))

    async def types_in(self, scope: str, text: str) -> Mapping[str, int]:
        """Return the types of what is personal in a text that is not going to be shown."""
        return (await self.hide(scope, (Text(text),), destination=None)).types

    async def learn(self, scope: str, value: Json, run_tokens: RunTokens | None = None) -> Sequence[str]:
        """Hide what is personal in something that code was given wherever it shows up; return what that is.

        Raises `PrivacyFailed`.
        What stands in it without context would be found where it is shown; so the fast mode is enough.
        """
        part = part_of(value)
        return await self._run([part], partial(self._learn, scope, part, run_tokens))

    async def restored(self, caller: Caller, value: Json, *, destination: str, run: str = "") -> Json:
        """Return a text or a value with values in for its tokens, for a file.

        Raises `RequestRefused` for guesses, and for what the policy does not let into files.
        """
        rulings = RestoreRulings(self.policy, caller.identity, FILE)
        return (await self.restored_where(caller.scope, value, destination, rulings, run=run, refuses=True)).content

    async def for_file(
        self,
        caller: Caller,
        text: str,
        *,
        name: str = "",
        keeps_tokens: bool = False,
        allows_unknown: bool = False,
        run: str = "",
    ) -> FileText:
        """Return a text as the file `name` gets it: with values in for its tokens, or as it is. Raises as `restored`.

        Tokens that are kept are not looked up: which of them the vault holds is not revealed. Tokens that stand for no
        value are refused unless `allows_unknown`.
        """
        if keeps_tokens:
            found = await self._run([Text(text)], lambda: len(tokens_in(text)), detects=False) if "[" in text else 0
            return FileText(text, kept=found)
        rulings = RestoreRulings(self.policy, caller.identity, FILE)
        done = await self.restored_where(caller.scope, text, "workspace", rulings, run=run, refuses=True, hint=name)
        if done.unknown and not allows_unknown:
            raise RequestRefused(
                f"Nothing was written: {some(done.unknown)} {stand(done.unknown)} for no value here. Give tokens "
                "letter by letter as they were shown, or write them as they are: write_file(…, allow_tokens=True)."
            )
        return FileText(cast("str", done.content), restored=done.count, unknown=done.unknown)

    async def restored_where(
        self,
        scope: str,
        value: Json,
        destination: str,
        allows: Allows,
        *,
        run: str = "",
        refuses: bool = False,
        hint: str = "",
    ) -> Restored:
        """Return a value with values in for those of its tokens that may be restored there; noted in the audit.

        `hint` is what a text is called, such as the name of its file. Raises `RequestRefused` for guesses and for
        values that cannot be written where their tokens stand, and `PolicyRefused` where it `refuses` what rulings do
        not allow.
        """
        from .tokens.restoring import Restored

        asker, scope = scope, tokens_of(scope)
        part = part_of(value)
        untouched = Restored(value, {}, ())
        if is_small([part]) and not holds_token(value, near=True):
            return untouched

        def restore() -> Restored:
            _refuse_too_long([part])
            room = self._guesses.room(asker)
            if not room:
                raise _guessed()
            sanitizer = self.sanitizer()
            if isinstance(value, str):
                done = sanitizer.restore_text(scope, value, hint=hint, allows=allows)
            else:
                done = sanitizer.restore_value(scope, value, allows=allows)
            if done.unknown:
                self._guesses.spend(asker, len(done.unknown))
                self._notes.add(scope, "unknown", destination, {"": len(done.unknown)}, run=run)
            if len(done.unknown) > room:
                raise _guessed()
            return done

        restored = await self._run([part], restore, detects=False)
        refusal = cast("RestoreRulings", allows).refusal() if refuses else None
        if refusal is not None:
            self._notes.add(asker, "refuse", destination, restored.kept, run=run, rule=refusal.rule)
            raise refusal
        if restored.unfit:
            self._notes.add(asker, "refuse", destination, restored.types, run=run, rule="form")
            raise _unfit(restored)
        self._notes.add(asker, "restore", destination, restored.types, run=run)
        self._notes.add(scope, "keep", destination, restored.kept, run=run)
        return restored

    async def known_in(self, scope: str, value: Json) -> Sequence[KnownPlace]:
        """Return where known values stand in a value, outside its tokens. Raises `PrivacyFailed`."""
        if is_harmless(value):
            return ()
        scope, part = tokens_of(scope), part_of(value)

        def find() -> Sequence[KnownPlace]:
            _refuse_too_long([part])
            return self.sanitizer().known_in(scope, value)

        return await self._run([part], find, detects=False)

    def why_tokens(self, arguments: Mapping[str, Json]) -> str:
        """Explain, where a call failed whose arguments still have tokens, what the tool was given; else nothing."""
        found = None if self.is_off else next(_tokens_within(arguments), None)
        if found is None:
            return ""
        token = f"The tool was given a token of personal data as it is, [{found}_…], and not the value."
        if self.filters:
            return f" {token} The operator's `restore` for this server says which types it may have; ask the user."
        return f" {token} Pass restore_pii(text) in its place." if self.shows_values else f" {token}"

    async def restored_for_model(self, caller: Caller, text: str) -> Restored:
        """Return a text with values in for its tokens, for the model. Raises `RequestRefused` where that may not be."""
        if not self.shows_values:
            self._notes.add(caller.scope, "refuse", MODEL, {"": len(TOKEN.findall(text))}, rule="RESTORE_TO_MODEL")
            raise RequestRefused(
                "Values are not shown to the model here: RESTORE_TO_MODEL is false. Let code write them to a file that "
                "the user reads, with write_file(name, restore_pii(text)), or give the tokens to a tool as they are."
            )
        rulings = RestoreRulings(self.policy, caller.identity, TO_MODEL)
        return await self.restored_where(caller.scope, text, MODEL, rulings, refuses=True)

    async def restored_for_code(
        self, caller: Caller, value: Json, *, destination: str = CODE, run: str = "", leaves: bool = False
    ) -> Restored:
        """Return what code asked to have restored; who asks for too many unknown tokens has to wait.

        What the policy does not let code have is refused, or left as tokens where it `leaves` them.
        Raises `RequestRefused` for that, for guesses, and where code could show the model what it must not see.
        """
        if not (self.filters or self.shows_values):
            raise RequestRefused(
                "Values are not given back here: RESTORE_TO_MODEL is false, and what code shows is not filtered. "
                "Work with the tokens, or ask the operator for PRIVACY=auto."
            )
        rulings = RestoreRulings(self.policy, caller.identity, CODE)
        return await self.restored_where(caller.scope, value, destination, rulings, run=run, refuses=not leaves)

    async def counts(self) -> VaultTotals:
        """Count what the vault holds; a vault that nothing has used yet is not opened for that."""
        vault = self._vault.made
        if vault is None:
            return VaultTotals(0, 0, {})
        return await in_thread(Kind.DATABASE, vault.counts)

    def close(self) -> None:
        """Write what is still to be noted, and forget the sessions. Blocks; before the database closes."""
        self._links.close()
        self._notes.close()
        try:
            self.forget_ended(())
        except SkillsDbError as error:
            _LOG.warning("The values of sessions that have ended are kept for a day: %s", error)
        if self._closes_detectors:
            self.detectors.close()

    def forget_ended(self, alive: Collection[str]) -> None:
        """Forget the values of MCP sessions that have ended: of those that were served, all but those `alive`. Blocks.

        Both are scopes. Where the process is killed, their values are kept for a day at most.
        """
        ended = [scope for scope in list(self._brief) if scope not in alive]
        if ended and self._vault.made is not None:
            self._vault.made.drop_scopes(ended)
        for scope in ended:
            self._brief.pop(scope, None)

    def forgets_only(self, ours: Callable[[str], bool]) -> None:
        """Forget with their MCP session only values of scopes that are `ours`: other servers have the others."""
        self._forgets = ours

    async def keep_purged(self) -> None:
        """Remove, again and again, what has outlived its time, from a vault that is there; until it is cancelled."""
        while not self.is_off:
            await asyncio.sleep(PURGE_SECONDS)
            try:
                await in_thread(Kind.DATABASE, self._purge, charged=False)
            except Exception as error:  # noqa: BLE001 - it is tried again
                _LOG.warning("What has outlived its time in the vault could not be removed: %s", error)

    def note(
        self,
        action: str,
        destination: str,
        types: Mapping[str, int],
        *,
        scope: str,
        run: str = "",
        rule: str = "",
    ) -> None:
        """Queue an audit note that something was done with values, by a run if one did; returns at once."""
        self._notes.add(scope, action, destination, types, run=run, rule=rule)

    def vault(self) -> Vault:
        """Return the vault, opened at its first use. Blocks. Raises `VaultKeyError`, or what the database raises."""
        return self._vault()

    def sanitizer(self) -> Sanitizer:
        """Return what hides and restores, made at its first use. Blocks."""
        vault = self.vault()
        with self._opening:
            if self._sanitizer is None:
                from .tokens.sanitizer import Sanitizer

                detector, learner = self.detectors.pair()
                self._sanitizer = Sanitizer(
                    detector, vault, learner=learner, durable=self._durable, link=self._links.add
                )
            return self._sanitizer

    def _purge(self) -> None:
        """Open the database for it only where there is one: what an earlier process kept ends in time too."""
        if self._vault.made is not None or self._settings.database_url or (self._home / DATABASE_FILE).exists():
            from ...skills_db.vault import drop_expired

            drop_expired(self._database())

    def key(self) -> bytes:
        """Return the vault's master key, made at first use. Blocks. Raises `VaultKeyError`, `VaultKeyWrong`.

        It stays the same while the process lives, whichever key outside the database opens it.
        """
        if self._key is None:
            from ...skills_db.vault_keys import tenants_key
            from .tokens.keys import root_key

            tenant = self._tenant
            if tenant is None:
                self._key = root_key(self._settings, self._operators, self._database())
            else:
                self._key = tenants_key(tenant.key(), tenant.id)
        return self._key

    def _open_vault(self) -> Vault:
        from ...skills_db.vault import Vault

        days = self._settings.privacy_ttl_days
        return Vault(
            self._database(), self.key(), ttl_days=days, is_brief=is_brief, values_max=self._settings.vault_values_max
        )

    def _judge(self, scope: str, run_tokens: RunTokens | None, withheld: Counter[str]) -> Judge:
        """Return what judges bytes within texts; the types for which some are `withheld` are counted. It blocks."""
        judged = 0

        def judge(data: bytes, is_packed: bool) -> str | None:
            nonlocal judged
            judged += is_packed
            types: Collection[str] | None = None
            with suppress(PrivacyFailed, HostWorkRefused):
                if not is_packed:
                    types = self._types_known(scope, data)
                elif judged <= RUNS_MAX:
                    types = self._types_packed(scope, io.BytesIO(data), run_tokens)
            if types is None:
                withheld[UNREAD] += 1
                return f"[{len(data)} bytes withheld: they could not be looked through for personal data]"
            withheld.update(types)
            return f"[{len(data)} bytes withheld: they hold {', '.join(sorted(types))}]" if types else None

        return judge

    def _types_packed(self, scope: str, file: IO[bytes], run_tokens: RunTokens | None) -> Collection[str]:
        """Return the types of what is personal in the first text of packed bytes that holds any."""
        with closing(self.detectors.texts_of(file, complete=True)) as texts:
            hidden = (self.sanitizer().hide(scope, [part_of(text)], run_tokens=run_tokens).types for text in texts)
            return set(next(filter(None, hidden), ()))

    def _types_known(self, scope: str, data: bytes) -> Collection[str]:
        """Return the types of known values in bytes that are neither packed nor text, such as those of a pickle."""
        said = [data.decode("utf-8", "replace"), data.replace(b"\0", b"").decode("latin-1")]
        places = self.sanitizer().known_in(scope, said)
        return {str(place.span.type) for place in places if len(place.text) >= _LEAST_IN_BYTES}

    def _learn(self, scope: str, part: Part, run_tokens: RunTokens | None) -> Sequence[str]:
        _refuse_too_long([part])
        return self.sanitizer().learn(tokens_of(scope), (part,), run_tokens)

    async def _run(self, parts: Sequence[Part], work: Callable[[], _T], *, detects: bool = True) -> _T:
        """Do work on parts in a thread, on long ones beside the others. Raises `PrivacyFailed`."""
        if detects and not self._loaded:
            await in_thread(Kind.PRIVACY, self._load, charged=False)
        is_long = not is_small(parts)
        phase = tracing.phase("sealab.privacy.detect" if detects else "sealab.privacy.restore")
        with phase, charged(self._settings.timeout_seconds):
            try:
                return await in_thread(Kind.LONG_PRIVACY if is_long else Kind.PRIVACY, work)
            except HostWorkRefused as refused:
                raise PrivacyFailed(
                    f"Personal data was not looked for to the end, so nothing is shown. {refused}"
                ) from None

    def _load(self) -> None:
        try:
            self.sanitizer().warm()
        except Exception as error:  # noqa: BLE001 - the work that needs it says so
            _LOG.warning("Personal data cannot be looked for: %s", error)
        else:
            self._loaded = True


def _guessed() -> RequestRefused:
    return RequestRefused(
        f"More than {GUESSES_MAX} tokens that nobody was given were asked for within a minute. Wait a minute, and ask "
        "for tokens as they were shown."
    )


def _refuse_too_long(parts: Sequence[Part]) -> None:
    if is_longer(parts, CHARS_MAX):
        raise PrivacyFailed(
            f"Personal data is looked for in {CHARS_MAX} characters at once, and this is more, so nothing is shown. "
            "Give, read or show it in pieces."
        )


def _unfit(restored: Restored) -> RequestRefused:
    first = restored.unfit[0]
    where = f" in {first.argument!r}" if first.argument else ""
    return RequestRefused(
        f"The value of {first.token}{where} cannot be written in {first.where}, so nothing was sent or written. Put "
        "the token where a value may stand, such as within quotes, or pass it as an argument of its own."
    )


_SHOWN_MAX = 5


def some(things: Sequence[str]) -> str:
    """Return the first of some things, and how many more there are."""
    more = len(things) - _SHOWN_MAX
    return ", ".join([*things[:_SHOWN_MAX], *([f"{more} more"] if more > 0 else [])])


def stand(things: Sequence[str]) -> str:
    """Return the verb."""
    return "stands" if len(things) == 1 else "stand"


def holds_token(value: Json, *, near: bool = False) -> bool:
    """Return whether a token stands anywhere in a value; `near` says that one may be rewritten."""
    if isinstance(value, str):
        return bool(mentions_in(value)) if near else "[" in value and TOKEN.search(value) is not None
    if isinstance(value, Mapping):
        return any(holds_token(key, near=near) or holds_token(inner, near=near) for key, inner in value.items())
    if isinstance(value, Sequence):
        return any(holds_token(each, near=near) for each in value)
    return False


def is_harmless(value: Json) -> bool:
    """Return whether there is nothing in a value that could be personal: no text, and no number but short ones."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return abs(value) < _HARMLESS_BELOW and value == int(value)
    return value in ("", [], {})


_HARMLESS_BELOW = 10_000


def _tokens_within(arguments: Json) -> Iterator[str]:
    """Yield the types of tokens within some arguments; of very many texts, those of the first."""
    waiting = [arguments]
    for _ in range(_TEXTS_LOOKED_AT):
        if not waiting:
            return
        match waiting.pop():
            case str(text):
                yield from (match[1] for match in TOKEN.finditer(text[:_TEXT_CHARS_LOOKED_AT]))
            case Mapping() as inner:
                waiting += islice(inner.values(), _TEXTS_LOOKED_AT)
            case list() as inner:
                waiting += islice(inner, _TEXTS_LOOKED_AT)
