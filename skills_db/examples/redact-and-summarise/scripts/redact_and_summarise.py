"""Shorten a text after personal data in it became tokens."""

import re

COMMON = frozenset(
    "a about after all also an and any are as at be been but by can could did do for from had has have he her his i if "
    "in into is it its me more my no not of on one or our out said she so some than that the their them then there they "
    "this to up us was we were what when which who will with would you your".split()
)


def redact_and_summarise(text: str, sentences: int = 3) -> dict:
    """Replace personal data by tokens, then keep the sentences that say most.

    What is returned may be shown: restore_pii(summary) gives the real values back to who may see them.

    Args:
        text: The text: a letter, a ticket, a protocol.
        sentences: How many sentences to keep, in their own order.

    Returns:
        {summary, sentences, of, redacted}
    """
    clean = sanitize_pii(text)
    parts = [part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z0-9\[<(\"])|\n{2,}", clean) if part.strip()]
    counts: dict[str, int] = {}
    for word in _words(clean):
        counts[word] = counts.get(word, 0) + 1
    scores = [
        sum(counts[word] for word in _words(part)) / (len(_words(part)) + 2) + (1 if index == 0 else 0)
        for index, part in enumerate(parts)
    ]
    best = sorted(sorted(range(len(parts)), key=lambda index: -scores[index])[: max(sentences, 0)])
    return {
        "summary": " ".join(parts[index] for index in best),
        "sentences": len(best),
        "of": len(parts),
        "redacted": clean != text,
    }


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z]{2,}", text.lower()) if word not in COMMON]


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, 'Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: redact_and_summarise(text: str, sentences: int = 3) -> dict'
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in ['text'] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(redact_and_summarise(**_given), default=repr, ensure_ascii=False))
