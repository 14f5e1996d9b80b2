"""Find what matters in a log."""

import re

LEVEL = re.compile(r"\b(CRITICAL|FATAL|ERROR|ERR|WARNING|WARN|INFO|DEBUG|TRACE)\b", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<ip>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<hex>"),
    (re.compile(r'"[^"]*"|\'[^\']*\''), "<text>"),
    (re.compile(r"\d+(?:\.\d+)?"), "<n>"),
)
SAME = {"ERR": "ERROR", "FATAL": "CRITICAL", "WARN": "WARNING"}


def log_triage(text: str, top: int = 5, level: str = "WARNING") -> dict:
    """Group the messages of a log by kind and show the most frequent and the first of each.

    Args:
        text: The log, one entry a line; lines without a level belong to the entry before.
        top: How many kinds of messages to show.
        level: The least level that counts: DEBUG, INFO, WARNING, ERROR or CRITICAL.

    Returns:
        {lines, levels: {level: count}, first, last, kinds: [{kind, level, count, first_line, example, detail?}]}
    """
    order = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    least = order.index(SAME.get(level.upper(), level.upper()))
    levels: dict[str, int] = {}
    kinds: dict[str, dict] = {}
    times: list[str] = []
    current = None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        found = LEVEL.search(line)
        if found is None:
            if current is not None and line.strip():
                current["detail"] = line.strip()[:200]
            continue
        name = SAME.get(found[1].upper(), found[1].upper())
        levels[name] = levels.get(name, 0) + 1
        moment = TIME.search(line)
        if moment:
            times.append(moment[0])
        current = None
        if order.index(name) < least:
            continue
        message = line[found.end() :].strip(" :|-]\t")
        kind = message
        for pattern, mark in VARYING:
            kind = pattern.sub(mark, kind)
        entry = {"kind": kind[:200], "level": name, "count": 0, "first_line": number, "example": message[:300]}
        current = kinds.setdefault(f"{name} {kind}", entry)
        current["count"] += 1
    shown = sorted(kinds.values(), key=lambda kind: (-order.index(kind["level"]), -kind["count"], kind["first_line"]))
    return {
        "lines": len(lines),
        "levels": levels,
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "kinds": shown[:top],
    }


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, "Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: log_triage(text: str, top: int = 5, level: str = 'WARNING') -> dict"
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in ['text', 'level'] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(log_triage(**_given), default=repr, ensure_ascii=False))
