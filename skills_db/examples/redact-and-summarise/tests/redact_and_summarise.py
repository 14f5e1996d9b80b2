LETTER = (
    "The invoice for the pump was sent twice. Please write to ann.miller@example.org about the invoice. "
    "The weather was fine. We hope that the invoice for the pump will be corrected."
)


def test_an_address_never_reaches_the_summary():
    told = redact_and_summarise(LETTER, sentences=4)
    assert "ann.miller@example.org" not in told["summary"]
    assert told["redacted"]
    assert restore_pii(told["summary"]) == LETTER


def test_the_sentences_that_say_most_are_kept_in_their_order():
    told = redact_and_summarise(LETTER, sentences=2)
    assert (told["sentences"], told["of"]) == (2, 4)
    assert told["summary"].startswith("The invoice for the pump was sent twice.")
    assert "weather" not in told["summary"]


def test_an_empty_text_has_an_empty_summary():
    assert redact_and_summarise("")["summary"] == ""
