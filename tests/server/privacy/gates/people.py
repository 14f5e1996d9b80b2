"""Invented people, of whom each case has its own: what was learned of one file says nothing of another."""

from __future__ import annotations

FIRST = (
    *("Adalwin", "Berthild", "Chlodo", "Dietlind", "Ekkehart", "Friedlies"),
    *("Gundolf", "Hiltrud", "Irmhild", "Jorinde", "Kunolf", "Luitgard"),
)


def person(number: int) -> str:
    return f"{FIRST[number % len(FIRST)]} Quastenberg{'abcdefghijklmnop'[number // len(FIRST)]}"
