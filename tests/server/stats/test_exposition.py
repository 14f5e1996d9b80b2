"""What the page of metrics is written in is what Prometheus's own parser reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from sealab.server.stats.exposition import counter, counters, gauge, histogram, information
from sealab.server.stats.run_totals import BUCKETS_SECONDS, RunTotals


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_each_kind_of_metric_is_read_with_its_type_and_its_help() -> None:
    text = (
        gauge("a", "One.", 3) + counter("b_total", "Two\nlines \\ here.", 2.5) + information("c", "Three.", {"v": "1"})
    )
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name: family.type for name, family in families.items()} == {"a": "gauge", "b": "counter", "c": "gauge"}
    assert families["b"].documentation == "Two\nlines \\ here."
    assert samples(text) == {("a", ()): 3, ("b_total", ()): 2.5, ("c", (("v", "1"),)): 1}


@given(st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1), st.floats(0, 1e300)))
def test_any_label_and_any_value_come_back_as_they_were(values: dict[str, float]) -> None:
    read = samples(counters("x_total", "Some.", "of", values))
    assert read == {("x_total", (("of", key),)): value for key, value in values.items()}


@given(st.lists(st.floats(0, 1000), max_size=50))
def test_a_duration_is_in_the_first_bucket_that_bounds_it_and_in_all_beyond(seconds: list[float]) -> None:
    totals = RunTotals()
    for each in seconds:
        totals.count("ok", each, 10.0)
    read = samples(histogram("d_seconds", "Durations.", BUCKETS_SECONDS, totals.by_bucket, totals.seconds))
    for bound in BUCKETS_SECONDS:
        label = str(int(bound)) if bound.is_integer() else repr(bound)
        assert read["d_seconds_bucket", (("le", label),)] == sum(each <= bound for each in seconds)
    assert read["d_seconds_bucket", (("le", "+Inf"),)] == read["d_seconds_count", ()] == len(seconds)
    assert read["d_seconds_sum", ()] == totals.seconds


def test_a_run_that_did_not_begin_is_counted_and_has_no_duration() -> None:
    totals = RunTotals()
    totals.count("busy", None, 0.0)
    assert totals.by_status == {"busy": 1}
    assert sum(totals.by_bucket) == 0
