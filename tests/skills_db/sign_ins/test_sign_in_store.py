"""Sign-ins in both databases: found by their owner alone, renewed by one process, sealed for where they stand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from sealab.skills_db.engine import Database
from sealab.skills_db.errors import SignInUnreadable
from sealab.skills_db.sign_ins.sign_in_flows import FLOWS_MAX, REFUSED, SIGNED_IN, SignInFlows
from sealab.skills_db.sign_ins.sign_in_store import SignInStore

from ..conftest import Place

KEY = bytes(range(32))


@pytest.fixture
def store(database: Database) -> SignInStore:
    return SignInStore(database, KEY)


@pytest.fixture
def flows(store: SignInStore) -> SignInFlows:
    return store.flows


def test_a_sign_in_is_found_by_its_person_and_server_alone(store: SignInStore) -> None:
    store.put("ada", "crm", {"token": "a"})
    store.put("bob", "crm", {"token": "b"})
    found = {(who, where): store.get(who, where) for who in ("ada", "bob", "eve") for where in ("crm", "mail")}
    told = {key: each.tokens["token"] for key, each in found.items() if each is not None}
    assert told == {("ada", "crm"): "a", ("bob", "crm"): "b"}
    assert "a" not in repr(found["ada", "crm"]).replace("StoredSignIn(version=1)", "")


def test_names_that_run_into_each_other_are_two_owners(store: SignInStore) -> None:
    store.put("ada", "1 crm", {"token": "a"})
    assert store.get("ada 1", " crm") is None
    assert store.get("ada 1 crm", "") is None


def test_what_is_sealed_for_one_owner_opens_for_no_other_and_with_no_other_key(
    store: SignInStore, database: Database
) -> None:
    store.put("ada", "crm", {"token": "a"})
    store.put("bob", "crm", {"token": "b"})
    with database.transaction() as session:
        ada, bob = store.keys.owner("ada", "crm"), store.keys.owner("bob", "crm")
        session.execute(
            sa.text(
                "UPDATE sealab_sign_in SET sealed = (SELECT sealed FROM sealab_sign_in WHERE owner = :ada) "
                "WHERE owner = :bob"
            ),
            {"ada": ada, "bob": bob},
        )
    with pytest.raises(SignInUnreadable):
        store.get("bob", "crm")
    assert SignInStore(database, bytes(32)).get("ada", "crm") is None


def test_of_many_that_would_renew_a_version_one_gets_it(place: Place) -> None:
    with place.open() as database, place.open() as other:
        stores = [SignInStore(database, KEY), SignInStore(other, KEY)]
        stores[0].put("ada", "crm", {"token": 1})
        with ThreadPoolExecutor(8) as threads:
            got = list(threads.map(lambda at: stores[at % 2].lease("ada", "crm", 1, f"process {at}", 60), range(16)))
        assert got.count(True) == 1
        leaser = f"process {got.index(True)}"
        assert not stores[1].renew("ada", "crm", 1, "another", {"token": 2})
        assert stores[1].renew("ada", "crm", 1, leaser, {"token": 2})
        assert not stores[1].renew("ada", "crm", 1, leaser, {"token": 3})
        found = stores[0].get("ada", "crm")
        assert found is not None
        assert (found.version, found.tokens) == (2, {"token": 2})


def test_a_lease_that_is_over_or_given_back_is_anothers(store: SignInStore) -> None:
    store.put("ada", "crm", {"token": 1})
    assert store.lease("ada", "crm", 1, "one", -1)
    assert store.lease("ada", "crm", 1, "two", 60)
    store.release("ada", "crm", 1, "one")  # not its any more
    assert not store.lease("ada", "crm", 1, "three", 60)
    store.release("ada", "crm", 1, "two")
    assert store.lease("ada", "crm", 1, "three", 60)


def test_what_was_removed_or_replaced_meanwhile_takes_no_renewal(store: SignInStore) -> None:
    store.put("ada", "crm", {"token": 1})
    assert store.lease("ada", "crm", 1, "one", 60)
    store.put("ada", "crm", {"token": "of a new sign-in"})
    assert not store.renew("ada", "crm", 1, "one", {"token": 2})
    assert store.lease("ada", "crm", 2, "one", 60)
    assert store.remove("ada", "crm")
    assert not store.renew("ada", "crm", 2, "one", {"token": 2})
    assert store.get("ada", "crm") is None
    assert not store.remove("ada", "crm")


def test_all_of_a_person_is_removed_and_nothing_of_others(store: SignInStore, flows: SignInFlows) -> None:
    for who in ("ada", "bob"):
        for where in ("crm", "mail"):
            store.put(who, where, {"token": f"{who} {where}"})
            flows.open(f"{who} {where}", who, where, {}, seconds=60)
    removed, given = store.remove_all("ada")
    assert (removed, {each["token"] for each in given}) == (2, {"ada crm", "ada mail"})
    assert store.remove_all("ada") == (0, ())
    assert store.get("bob", "crm") is not None
    assert flows.get("ada crm") is None
    assert flows.get("bob crm") is not None
    removed, given = store.remove_all()
    assert (removed, {each["token"] for each in given}) == (2, {"bob crm", "bob mail"})
    assert flows.get("bob crm") is None


def test_a_flow_is_the_first_browsers_and_is_come_back_to_once(flows: SignInFlows) -> None:
    flows.open("link", "ada", "crm", {"server": "crm"}, seconds=60)
    assert not flows.begin("another link", "hers", "state", {})
    assert flows.begin("link", "hers", "state 1", {"verifier": "v1"})
    assert not flows.begin("link", "another", "state 2", {})
    assert flows.begin("link", "hers", "state 3", {"verifier": "v3"})  # she went back and pressed again
    for state, browser in (("state 1", "hers"), ("state 3", "another"), ("state 3", ""), ("", "hers")):
        assert flows.come_back(state, browser) is None
    with ThreadPoolExecutor(4) as threads:
        came = [each for each in threads.map(lambda _: flows.come_back("state 3", "hers"), range(8)) if each]
    ((key, flow),) = came
    assert flow.secrets == {"verifier": "v3"}
    flows.end(key, SIGNED_IN)
    ended = flows.get("link")
    assert ended is not None
    assert (ended.outcome, ended.is_open) == (SIGNED_IN, False)
    assert not flows.begin("link", "hers", "state 4", {})


def test_a_flow_whose_time_is_over_begins_and_ends_nothing(flows: SignInFlows) -> None:
    flows.open("link", "ada", "crm", {}, seconds=-1)
    assert not flows.begin("link", "hers", "state", {})
    found = flows.get("link")
    assert found is not None
    assert not found.is_open


def test_the_flows_of_an_owner_are_bounded_and_the_oldest_ends(flows: SignInFlows) -> None:
    for number in range(FLOWS_MAX + 3):
        flows.open(f"link {number}", "ada", "crm", {}, seconds=60)
    alive = [number for number in range(FLOWS_MAX + 3) if flows.get(f"link {number}") is not None]
    assert alive == list(range(3, FLOWS_MAX + 3))


def test_no_secret_of_a_browser_or_an_issuer_is_in_the_tables(
    store: SignInStore, flows: SignInFlows, database: Database
) -> None:
    secrets = ["canary-link", "canary-browser", "canary-state", "canary-verifier", "canary-token", "canary-person"]
    flows.open("canary-link", "canary-person", "crm", {"who": "canary-person"}, seconds=60)
    assert flows.begin("canary-link", "canary-browser", "canary-state", {"verifier": "canary-verifier"})
    store.put("canary-person", "crm", {"token": "canary-token"})
    with database.read() as session:
        rows = [
            tuple(bytes(each) if isinstance(each, memoryview) else each for each in row)
            for table in ("sealab_sign_in", "sealab_sign_in_flow")
            for row in session.execute(sa.text(f"SELECT * FROM {table}"))
        ]
    assert len(rows) == 2
    for secret in secrets:
        assert secret not in str(rows)
    flows.end(store.keys.secret("link", "canary-link"), REFUSED)
    with database.read() as session:
        left = session.execute(sa.text("SELECT state, sealed_secrets FROM sealab_sign_in_flow")).one()
    assert tuple(left) == (None, None)
