"""Cuts the text of a task into its clauses, so that each step of a long task finds its own tools."""

from __future__ import annotations

import re

MOST_CLAUSES = 8
SHORTEST_CLAUSE = 9

# The verbs that begin a new step after a plain "and"; before a noun "and" joins two things of one step.
_VERBS = """
    add analyze book buy calculate check compare compute convert create delete determine download estimate evaluate
    export extract fetch find generate get give help identify list make monitor notify open plan post provide publish
    read recommend remove retrieve save schedule search send set show suggest summarize tell track translate update
    upload write
"""
_CONNECTIVES = """
    and then|then|and also|also|additionally|in addition|as well as|furthermore|moreover|besides|finally|lastly
    |after that|afterwards|next
"""
_CUT = re.compile(
    r"(?<=[.!?;])\s|\n|(?<=[\u3002\uff01\uff1f\uff1b])"
    rf"|,?\s(?:{'|'.join(each.strip() for each in _CONNECTIVES.split('|'))})\s"
    rf"|,\s(?=and\b)|\sand\s(?=(?:{'|'.join(_VERBS.split())})\b)",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"(?<!\s)\s*\n\s*")


def clauses(text: str) -> list[str]:
    """Return the clauses of a text in their order, at most `MOST_CLAUSES`; a text of one clause gives none.

    Cut are sentences, lines, and steps: at "and then", "also", "finally", and at an "and" before a verb.
    """
    # Blanks are joined first: a run of them would cost the pattern quadratic time.
    even = _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()
    found = [part for part in _CUT.split(even) if len(part) >= SHORTEST_CLAUSE]
    return found[:MOST_CLAUSES] if len(found) > 1 else []
