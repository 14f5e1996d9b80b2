LOG = """2026-01-02 03:04:05 INFO started on 10.0.0.1:80
2026-01-02 03:04:06 ERROR request 17 failed: timeout after 30.5 s
Traceback (most recent call last):
TimeoutError: no answer
2026-01-02 03:04:07 WARN disk at 91 %
2026-01-02 03:04:08 ERROR request 18 failed: timeout after 12 s
"""


def test_messages_of_one_kind_are_counted_together():
    told = log_triage(LOG)
    assert told["levels"] == {"INFO": 1, "ERROR": 2, "WARNING": 1}
    first, second = told["kinds"]
    assert (first["kind"], first["count"], first["first_line"]) == ("request <n> failed: timeout after <n> s", 2, 2)
    assert first["detail"] == "TimeoutError: no answer"
    assert second["level"] == "WARNING"


def test_the_span_and_the_level_are_kept():
    told = log_triage(LOG, level="error", top=1)
    assert (told["first"], told["last"]) == ("2026-01-02 03:04:05", "2026-01-02 03:04:08")
    assert [kind["level"] for kind in told["kinds"]] == ["ERROR"]


def test_a_log_without_levels_has_no_kinds():
    assert log_triage("a\nb\n") == {"lines": 2, "levels": {}, "first": None, "last": None, "kinds": []}
