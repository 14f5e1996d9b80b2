"""What a workspace in an object store holds is counted for all servers, and no room is given twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sealab.skills_db.workspace_counts import WorkspaceCounts

from .conftest import Place


def test_servers_that_claim_at_once_never_get_more_than_there_is(place: Place) -> None:
    with place.open() as database:
        servers = [WorkspaceCounts(lambda: database) for _ in range(4)]

        def claims(server: WorkspaceCounts) -> int:
            had = 0
            for _ in range(10):
                claim = server.claim(100, 1, bytes_max=1000, entries_max=100)
                if claim is not None:
                    server.finish(claim, 100, 1)
                    had += 1
            return had

        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(claims, servers)) == 10
        assert servers[0].used()[:2] == (1000, 10)


def test_a_claim_counts_until_it_is_finished_and_what_is_removed_is_given_back(place: Place) -> None:
    with place.open() as database:
        counts = WorkspaceCounts(lambda: database)
        claim = counts.claim(600, 1, bytes_max=1000, entries_max=10)
        assert counts.claim(600, 1, bytes_max=1000, entries_max=10) is None
        assert counts.used()[:2] == (600, 1)
        counts.finish(claim, 0, 0)
        assert counts.used()[:2] == (0, 0)
        counts.finish(None, -5, 0)
        assert counts.claim(-10, 0, bytes_max=0, entries_max=0) is not None, "what gives back is never refused"


def test_a_listing_counts_only_where_nothing_changed_meanwhile(place: Place) -> None:
    with place.open() as database:
        counts = WorkspaceCounts(lambda: database)
        version = counts.used()[2]
        claim = counts.claim(10, 1, bytes_max=1000, entries_max=10)
        assert not counts.recounted(version, 500, 5)
        assert not counts.recounted(counts.used()[2], 500, 5), "a claim is open, whose object may be in the listing"
        counts.finish(claim, 10, 1)
        assert not counts.recounted(version, 500, 5)
        assert counts.recounted(counts.used()[2], 500, 5)
        assert counts.used()[:2] == (500, 5)
        assert counts.used()[3]


def test_a_name_is_held_by_one_server_at_a_time(place: Place) -> None:
    with place.open() as database:
        one, two = WorkspaceCounts(lambda: database), WorkspaceCounts(lambda: database)
        with one.named("f", 60) as is_held:
            assert is_held
            assert not two._hold("f", "two", 60)
            assert two._hold("g", "two", 60)
        with two.named("f", 60) as is_held:
            assert is_held
