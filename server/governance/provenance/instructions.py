"""Whether a text gives orders to an assistant: what is read as data, and says what to do with it.

Heuristics: phrases that address a model, or speak of its instructions, as published collections of injected prompts
have them (AgentDojo, https://arxiv.org/abs/2406.13352; Greshake et al., https://arxiv.org/abs/2302.12173). An order
that is worded as an ordinary request ("Please pay the bill") is not found, nor one in another language than these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

CALLS_SHOWN = 20
GIVES_ORDERS = "which gives instructions to an assistant"
"""What a clause about a text says of one that gives orders."""
TEXT_CHARS_MAX = 200_000
"""Characters of one text that are looked through."""

_HINTS = (
    *("ignor", "disregard", "forget", "overrid", "instruct", "prompt", "directive", "assistant", "language model"),
    *("llm", "gpt", "artificial intelligence", "chatbot", "message from me", "before you", "after you do"),
    *("the user", "the human", "anweisungen", "<information", "</information", "<system", "</system", "<important"),
    *("</important", "[inst", "[/inst", "[system", "[/system", "<|"),
)
"""Each phrase has one of these, or the word `ai`: it is looked for around them alone, in a tenth of the time."""
_PHRASE_CHARS = 200
"""Longer than any phrase."""
_ADDRESSED = re.compile(
    r"""
    \b(?:ignore|disregard|forget|override)\s(?:(?:all|any|of|the|your|my)\s){0,4}
        (?:(?:previous|prior|above|earlier|preceding|original|former)\s)?
        (?:instruction|order|prompt|guideline|rule|direction)s?\b
    | \b(?:previous|prior|above|earlier)\sinstructions\b
    | \byour\s(?:(?:new|real|actual|system|next|true)\s){0,2}(?:instruction|prompt|directive)s?\b
    | \bmessage\sfrom\sme\b.{0,60}\bto\syou\b
    | \bbefore\syou\s(?:(?:can|may|should)\s)?(?:solve|do|answer|complete|continue|proceed|respond|finish)\b
    | \bafter\syou\sdo\sthat\b
    | \b(?:dear|hey|hello|hi|attention|note\sto|you\sare\s(?:now\s)?an?|instructions?\s(?:for|to)(?:\s(?:the|an|any))?)
        [\s:,]{1,2}(?:(?:helpful|the|all|any)\s)?(?:ai|artificial\sintelligence|assistant|language\smodel|llm|chatbot|gpt)\b
    | \b(?:ai|llm|gpt)(?:\s(?:assistant|agent|model|bot)s?)?\b.{0,40}
        \b(?:must|should|shall|please|needs?\sto|ha(?:s|ve)\sto)\b
    | \b(?:do\snot|don't|never|without)\s(?:tell|inform|mention|notify)(?:ing)?\b.{0,30}\bthe\s(?:user|human)\b
    | </?(?:information|system|instructions?|assistant|important)>
    | \[/?(?:inst|system)\] | <\|\w{1,20}\|>
    | \bignorier(?:e|en\sSie)\s(?:alle\s)?(?:bisherigen|vorherigen)\sanweisungen\b
    | \bignore[zr]?\s(?:toutes\s)?les\sinstructions\b | \bignor[ae]\s(?:todas\s)?las\sinstrucciones\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


def gives_orders(text: str) -> bool:
    """Return whether a text gives orders to an assistant, as far as its wording shows. Takes linear time."""
    text = " ".join(text[:TEXT_CHARS_MAX].lower().split("\n"))
    places = [at for hint in _HINTS for at in _places(hint, text)]
    places += [at for at in _places("ai", text) if not text[at - 1 : at].isalnum()]
    if not places:
        return False
    begin = end = 0
    for at in sorted(places):
        if at - _PHRASE_CHARS > end:
            if _ADDRESSED.search(text, begin, end):
                return True
            begin = at - _PHRASE_CHARS
        end = at + _PHRASE_CHARS
    return _ADDRESSED.search(text, begin, end) is not None


def _places(hint: str, text: str) -> Iterator[int]:
    at = text.find(hint)
    while at >= 0:
        yield at
        at = text.find(hint, at + len(hint))


def orders_said(calls: Sequence[str], most: int = CALLS_SHOWN) -> str:
    """Return a note that texts of calls give orders, naming `most` of these, the newest last; empty without any."""
    if not calls:
        return ""
    more = f"{len(calls) - most} more and " if len(calls) > most else ""
    return f"The text of {more}{', '.join(calls[-most:])} gives instructions to an assistant."
