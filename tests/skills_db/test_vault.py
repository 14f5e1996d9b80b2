"""The vault: the same value has the same token, values are unreadable without the key, and forgetting forgets."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.errors import VaultDamaged, VaultFull, VaultKeyWrong
from sealab.skills_db.vault import ALPHABET, Form, Note, Value, Vault, drop_expired
from sealab.skills_db.vault_keys import ScopeKeys

from .conftest import Place

KEY = bytes(range(32))
MAIL = Value("EMAIL", "jane.roe@corp.example")


@pytest.fixture
def vault(database: Database) -> Vault:
    return Vault(database, KEY)


def token(vault: Vault, value: Value, scope: str = "home") -> str:
    return vault.tokens_for(scope, [value])[0].token


def test_a_value_has_one_token_of_ten_letters_and_gets_back_what_it_was(vault: Vault) -> None:
    first, again = vault.tokens_for("home", [MAIL, MAIL])
    assert first == again == vault.tokens_for("home", [MAIL])[0]
    assert len(first.token) == 10
    assert set(first.token) <= set(ALPHABET)
    assert first.shown == f"[EMAIL_{first.token}]"
    assert vault.resolve("home", [first.token]) == {first.token: first}


def test_scopes_do_not_share_tokens_and_cannot_resolve_each_others(vault: Vault) -> None:
    mine, theirs = token(vault, MAIL), token(vault, MAIL, "other")
    assert mine != theirs
    assert vault.resolve("other", [mine]) == {}
    assert vault.resolve("home", [theirs]) == {}


def test_two_servers_on_one_vault_agree_also_when_they_begin_at_the_same_moment(place: Place) -> None:
    values = [Value("PERSON", f"Person {number}") for number in range(60)]
    found: list[list[str]] = []
    start = threading.Barrier(4)

    def serve() -> None:
        with place.open() as database:
            vault = Vault(database, KEY)
            start.wait()
            found.append([entry.token for entry in vault.tokens_for("home", values)])

    servers = [threading.Thread(target=serve) for _ in range(4)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    assert len(found) == 4
    assert all(tokens == found[0] for tokens in found)
    assert len(set(found[0])) == 60


def test_a_known_value_keeps_its_token_when_it_is_met_as_another_type(vault: Vault) -> None:
    entry = vault.tokens_for("home", [MAIL])[0]
    assert vault.tokens_for("home", [Value("PERSON", MAIL.text)]) == [entry]


def test_a_number_and_its_text_are_two_values(vault: Vault) -> None:
    number = vault.tokens_for("home", [Value("CARD", "4111111111111111", Form.NUMBER)])[0]
    text = vault.tokens_for("home", [Value("CARD", "4111111111111111")])[0]
    assert number.token != text.token
    assert vault.resolve("home", [number.token])[number.token].value.form is Form.NUMBER


def test_where_two_values_would_have_one_token_the_second_gets_another(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ScopeKeys.token
    monkeypatch.setattr(
        ScopeKeys, "token", lambda keys, value, counter: "0000000000" if counter < 2 else real(keys, value, counter)
    )
    first, second, third = vault.tokens_for("home", [Value("PERSON", name) for name in ("Ann", "Ben", "Cid")])
    tokens = {first.token, second.token, third.token}
    assert len(tokens) == 3
    assert {entry.value.text for entry in vault.resolve("home", tokens).values()} == {"Ann", "Ben", "Cid"}


def test_nothing_on_the_disk_tells_a_value_or_whose_it_is(tmp_path: Path) -> None:
    with open_database(None, tmp_path) as database:
        vault = Vault(database, KEY)
        vault.tokens_for("home of jane", [MAIL, Value("PERSON", "Jane Roe")])
        vault.note(Note(time.time(), "home of jane", "hide", "model", {"EMAIL": 1}))
    whole = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in (b"jane", b"Jane", b"Roe", b"corp.example", KEY):
        assert secret not in whole


def test_another_key_is_refused_and_reads_nothing(place: Place) -> None:
    with place.open() as database:
        token(Vault(database, KEY), MAIL)
    with place.open() as database, pytest.raises(VaultKeyWrong, match="another key"):
        Vault(database, bytes(32))
    with place.open() as database, pytest.raises(VaultKeyWrong, match="32"):
        Vault(database, b"short")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sealab_vault_value SET type = 'PERSON'",
        "UPDATE sealab_vault_value SET form = 'number'",
        (
            "UPDATE sealab_vault_value SET sealed = (SELECT sealed FROM sealab_vault_value v WHERE v.token <> '{token}')"
            " WHERE token = '{token}'"
        ),
    ],
)
def test_an_entry_that_was_changed_is_an_error_never_another_value(
    database: Database, vault: Vault, change: str
) -> None:
    changed = token(vault, MAIL)
    token(vault, Value("EMAIL", "other@corp.example"))
    with database.transaction() as session:
        session.execute(sa.text(change.format(token=changed)))
    with pytest.raises(VaultDamaged):
        vault.resolve("home", [changed])


def test_what_has_outlived_its_time_is_gone_and_what_is_met_again_lives_on(database: Database) -> None:
    short = Vault(database, KEY, ttl_days=0.5 / 86_400)
    entry = short.tokens_for("home", [MAIL])[0]
    assert short.resolve("home", [entry.token])
    while entry.expires is not None and entry.expires > time.time():
        time.sleep(0.05)
    assert short.resolve("home", [entry.token]) == {}
    assert short.known("home").entries == ()
    assert drop_expired(database) == 1
    assert short.counts().values == 0
    longer = Vault(database, KEY, ttl_days=30)
    renewed = longer.tokens_for("home", [MAIL])[0]
    assert renewed.token == entry.token
    assert renewed.expires is not None
    assert renewed.expires > time.time() + 29 * 86_400


def test_forgetting_a_person_takes_what_holds_the_name_in_every_scope_and_nothing_else(vault: Vault) -> None:
    kept = token(vault, Value("PERSON", "Roerich"))
    gone = [
        (scope, token(vault, Value(kind, text), scope))
        for scope in ("home", "other")
        for kind, text in (("PERSON", "Jane Roe"), ("ADDRESS", "Roe, 12 Main St"), ("PERSON", "ROE"))
    ]
    assert vault.forget_entries(vault.person("roe").found) == {"PERSON": 4, "ADDRESS": 2}
    for scope, each in gone:
        assert vault.resolve(scope, [each]) == {}
    assert vault.resolve("home", [kept])
    shown = vault.tokens_for("home", [MAIL])[0].shown
    assert vault.forget_entries(vault.person(shown).found) == {"EMAIL": 1}
    assert vault.forget_entries(vault.person("  ").found) == {}


def test_a_scope_can_be_forgotten_whole(vault: Vault) -> None:
    token(vault, MAIL)
    theirs = token(vault, MAIL, "other")
    assert vault.forget_scope(vault.scope_name("home")) == {"EMAIL": 1}
    assert vault.scopes() == [vault.scope_name("other")]
    assert vault.forget_scope("nobody's") == {}
    assert vault.known("home").entries == ()
    assert vault.resolve("other", [theirs])


def test_news_are_told_in_order_and_a_purge_is_noticed(vault: Vault) -> None:
    vault.tokens_for("home", [Value("PERSON", "Ann"), Value("PERSON", "Ben")])
    known = vault.known("home")
    assert [entry.value.text for entry in known.entries] == ["Ann", "Ben"]
    assert vault.known("home", known.entries[-1].number).entries == ()
    vault.forget_entries(vault.person("Ann").found)
    after = vault.known("home")
    assert after.purges > known.purges
    assert [entry.value.text for entry in after.entries] == ["Ben"]


def test_the_audit_says_what_was_done_with_how_many_and_not_with_whom(vault: Vault) -> None:
    hidden = Note(1.0, "home", "hide", "model", {"EMAIL": 2, "PERSON": 1})
    vault.note(hidden, Note(2.0, "home", "restore", "mail.send", {"EMAIL": 1}))
    vault.note()
    lines = vault.audit()
    assert [(line.action, line.destination, line.type, line.count) for line in lines] == [
        ("restore", "mail.send", "EMAIL", 1),
        ("hide", "model", "PERSON", 1),
        ("hide", "model", "EMAIL", 2),
    ]
    assert {line.scope for line in lines} == {vault.scope_name("home")}
    assert len(vault.audit(limit=1)) == 1


@given(text=st.text(st.characters(), max_size=200), form=st.sampled_from([Form.TEXT, Form.NUMBER]))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, text: str, form: Form) -> None:
    vault = _one_vault(tmp_path_factory)
    entry = vault.tokens_for("home", [Value("SECRET", text, form)])[0]
    assert vault.resolve("home", [entry.token])[entry.token].value == Value("SECRET", text, form)


_VAULTS: list[Vault] = []


def _one_vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    if not _VAULTS:
        _VAULTS.append(Vault(open_database(None, tmp_path_factory.mktemp("vault")), KEY))
    return _VAULTS[0]


def test_an_entry_need_not_be_asked_for_again_until_it_fades(place: Place) -> None:
    with place.open() as database:
        vault = Vault(database, KEY, ttl_days=10)
        entry = vault.tokens_for("home", [MAIL])[0]
        assert not vault.fades(entry, "home")
        assert entry.expires is not None
        old = replace(entry, expires=entry.expires - 2 * 86_400)
        assert vault.fades(old, "home")
        assert Vault(database, KEY).fades(entry, "home"), (
            "where nothing ends, it has to be told that this does not either"
        )
        assert not Vault(database, KEY).fades(Vault(database, KEY).tokens_for("home", [MAIL])[0], "home")


@pytest.mark.parametrize("ttl_days", [None, 90, 0.5])
def test_what_nobody_can_ask_for_later_is_kept_for_a_day_at_most(place: Place, ttl_days: float | None) -> None:
    with place.open() as database:
        vault = Vault(database, KEY, ttl_days=ttl_days, is_brief=lambda scope: scope.startswith("session"))
        brief, other, lasting = (vault.tokens_for(scope, [MAIL])[0] for scope in ("session 1", "session 2", "home"))
        assert brief.expires is not None
        assert brief.expires - time.time() == pytest.approx(min(ttl_days or 1, 1) * 86_400, abs=60)
        assert not vault.fades(brief, "session 1")
        assert vault.fades(replace(brief, expires=brief.expires - 7 * 3600), "session 1")
        assert not vault.fades(lasting, "home")
        vault.drop_scopes(["session 1", "session 3"])
        assert vault.resolve("session 1", [brief.token]) == {}
        assert vault.resolve("session 2", [other.token])
        assert vault.resolve("home", [lasting.token])


def test_many_new_values_and_few_become_entries_alike(vault: Vault) -> None:
    values = [Value("PERSON", f"Person {number}") for number in range(9)]
    few = vault.tokens_for("home", values[:3], durable=False)
    assert [entry.value for entry in few] == values[:3]
    many = vault.tokens_for("home", values)
    assert many[:3] == few
    assert [entry.value for entry in many] == values
    assert vault.resolve("home", [entry.token for entry in many]) == {entry.token: entry for entry in many}


def test_on_a_server_that_may_crash_alone_new_tokens_are_durable_whatever_is_asked(postgres_place: Place) -> None:
    with postgres_place.open() as database:
        vault = Vault(database, KEY)
        said: list[str] = []

        def listen(*sent: object) -> None:
            said.append(str(sent[2]))

        sa.event.listen(sa.Engine, "before_cursor_execute", listen)
        try:
            vault.tokens_for("home", [MAIL], durable=False)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", listen)
        assert any("lock_timeout" in statement for statement in said)
        assert not any("synchronous_commit" in statement for statement in said)


def test_a_scope_has_no_more_values_than_it_may_and_others_are_not_held_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.skills_db.vault.SCOPE_VALUES_MAX", 20)
    vault = Vault(database, KEY)
    values = [Value("PERSON", f"Person {number}") for number in range(21)]
    kept = vault.tokens_for("home", values[:20])
    for some in (values[20:], values, [Value("PERSON", f"Else {number}") for number in range(9)]):
        with pytest.raises(VaultFull, match="sealab pii forget"):
            vault.tokens_for("home", some)
    assert vault.counts().values == 20
    assert vault.tokens_for("home", values[:20]) == kept
    assert len(vault.tokens_for("other", values[20:])) == 1
    vault.forget_entries(vault.person("Person 3").found)
    assert vault.tokens_for("home", values[20:])
    with pytest.raises(VaultFull):
        Vault(database, KEY).tokens_for("home", [Value("PERSON", "somebody else")])


@pytest.mark.parametrize("count", [3, 30])
def test_a_scope_has_no_more_bytes_than_it_may(database: Database, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("sealab.skills_db.vault.SCOPE_BYTES_MAX", 20_000)
    vault = Vault(database, KEY)
    vault.tokens_for("home", [Value("SECRET", "a" * 9_000), Value("SECRET", "b" * 9_000)])
    with pytest.raises(VaultFull):
        vault.tokens_for("home", [Value("SECRET", f"{number}{'c' * (9_000 // count)}") for number in range(count)])
    assert vault.counts().values == 2


def test_what_other_programs_add_counts_too(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.skills_db.vault.SCOPE_VALUES_MAX", 40)
    one, other = Vault(database, KEY), Vault(database, KEY)

    def add(number: int) -> None:
        one.tokens_for("home", [Value("PERSON", f"One {number}")])
        other.tokens_for("home", [Value("PERSON", f"Other {number}")])

    with pytest.raises(VaultFull):
        any(map(add, range(25)))
    assert one.counts().values == 40


def test_what_is_forgotten_makes_room_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.skills_db.vault.SCOPE_VALUES_MAX", 10)
    vault = Vault(database, KEY, ttl_days=1)
    people = [("PERSON", f"Person {number}") for number in range(10)]
    for forget in (
        lambda: vault.forget_entries(vault.person("Person 3").found),
        lambda: vault.forget_scope(vault.scope_name("home")),
        lambda: vault.drop_scopes(["home"]),
    ):
        vault.show_many("home", people)
        with pytest.raises(VaultFull):
            vault.show_many("home", [("PERSON", "one more")])
        forget()
        assert vault.show_many("home", [("PERSON", "one more")]).new == 1
        vault.drop_scopes(["home"])
    vault.show_many("home", people)
    later = time.time() + 2 * 86_400
    monkeypatch.setattr("sealab.skills_db.vault.time.time", lambda: later)
    assert drop_expired(database) == 10
    assert vault.show_many("home", people).new == 10


def test_a_scope_of_a_connection_alone_has_less(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.skills_db.vault.BRIEF_VALUES_MAX", 3)
    vault = Vault(database, KEY, is_brief=lambda scope: scope == "brief")
    people = [("PERSON", f"Person {number}") for number in range(4)]
    assert vault.show_many("home", people).new == 4
    with pytest.raises(VaultFull, match="holds 3 values"):
        vault.show_many("brief", people)


def test_many_values_have_the_tokens_that_each_would_have_alone(vault: Vault) -> None:
    some = [Value("PERSON", "Jane Roe"), Value("PHONE", "4711000815", Form.NUMBER)]
    before = vault.tokens_for("home", some)
    people = [("PERSON", f"Jané Roe {number}") for number in range(1200)]
    made = vault.show_many("home", [*people, ("USERNAME", "Jane Roe")])
    assert made.new == 1200
    assert made.shown[-1] == before[0].shown, "a value known as another type keeps it"
    assert made.shown[:-1] == [entry.shown for entry in vault.tokens_for("home", [Value(*each) for each in people])]
    assert vault.show_many("home", [("PHONE", "4711000815")], Form.NUMBER).shown == [before[1].shown]
    assert vault.show_many("home", people).new == 0
    token = made.shown[7][1:-1].rpartition("_")[2]
    assert vault.resolve("home", [token])[token].value == Value("PERSON", "Jané Roe 7")
    assert not vault.resolve("other", [token])


def test_many_values_of_which_one_has_anothers_token_get_different_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(database, KEY)
    # With one letter of ten, of forty values some have the same.
    monkeypatch.setattr(
        ScopeKeys, "tokens_of", lambda _keys, values, _form: [f"aaaaaaaaa{len(t) % 4}" for _k, t in values]
    )
    people = [("PERSON", "Jane" + "e" * number) for number in range(40)]
    made = vault.show_many("home", people)
    assert made.new == 40
    assert len(set(made.shown)) == 40
    tokens = [shown[1:-1].rpartition("_")[2] for shown in made.shown]
    found = vault.resolve("home", tokens)
    assert [found[token].value.text for token in tokens] == [text for _kind, text in people]


def test_many_values_that_are_refused_are_not_stored(vault: Vault) -> None:
    def refuse(_values: int, _size: int) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        vault.show_many("home", [("PERSON", f"Person {number}") for number in range(20)], admits=refuse)
    assert vault.counts().values == 0


def test_who_asks_for_tokens_is_told_what_is_new_and_may_refuse(vault: Vault) -> None:
    told: list[tuple[int, int]] = []

    def admits(values: int, size: int) -> None:
        told.append((values, size))
        if values > 10:
            raise RuntimeError

    values = [Value("PERSON", f"Person {number}") for number in range(30)]
    vault.tokens_for("home", values[:3], admits=admits)
    vault.tokens_for("home", values[:9], admits=admits)
    vault.tokens_for("home", values[:9], admits=admits)
    with pytest.raises(RuntimeError):
        vault.tokens_for("home", values, admits=admits)
    assert [count for count, _ in told] == [3, 6, 21]
    assert all(size > 10 * count for count, size in told)
    assert vault.counts().values == 9


def test_tokens_with_a_salt_are_the_scopes_and_nobody_elses_to_compare(vault: Vault) -> None:
    own = vault.tokens_for("home", [MAIL])[0]
    salted = [vault.tokens_for("home", [MAIL], salt=bytes([number]) * 16)[0] for number in range(3)]
    assert len({own.token, *(each.token for each in salted)}) == 4
    assert vault.tokens_for("home", [MAIL], salt=bytes(16))[0].token == salted[0].token
    assert vault.tokens_for("home", [MAIL])[0] == own
    found = vault.resolve("home", [own.token, salted[0].token])
    assert {each.value for each in found.values()} == {MAIL}
    assert [each.apart for each in vault.known("home").entries] == [False, True, True, True]
    assert vault.forget_entries(vault.person(MAIL.text).found) == {"EMAIL": 4}


def test_only_the_newest_values_are_read_when_no_more_are_wanted(vault: Vault) -> None:
    vault.tokens_for("other", [MAIL])
    vault.tokens_for("home", [Value("PERSON", f"Person {number}") for number in range(30)])
    entries = vault.known("home", most=4).entries
    assert [entry.value.text for entry in entries] == [f"Person {number}" for number in range(26, 30)]
    assert vault.known("home", entries[1].number, most=9).entries == entries[2:]
