"""Compare two JSON documents."""


def json_diff(before: object, after: object, ignore: list[str] | None = None, tolerance: float = 0.0) -> dict:
    """Compare two JSON values and say what was added, removed and changed, by path.

    Args:
        before: The earlier value.
        after: The later value.
        ignore: Keys that are left out of the comparison wherever they stand, such as "updated_at".
        tolerance: Numbers that differ by no more than this count as equal.

    Returns:
        {equal, added: {path: value}, removed: {path: value}, changed: {path: {before, after}}}
    """
    diff = {"added": {}, "removed": {}, "changed": {}}
    _compare("$", before, after, frozenset(ignore or ()), tolerance, diff)
    return {"equal": not any(diff.values()), **diff}


def _compare(path, before, after, ignore, tolerance, diff):
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if key in ignore:
                continue
            place = f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]"
            if key not in after:
                diff["removed"][place] = before[key]
            elif key not in before:
                diff["added"][place] = after[key]
            else:
                _compare(place, before[key], after[key], ignore, tolerance, diff)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            place = f"{path}[{index}]"
            if index >= len(after):
                diff["removed"][place] = before[index]
            elif index >= len(before):
                diff["added"][place] = after[index]
            else:
                _compare(place, before[index], after[index], ignore, tolerance, diff)
    elif not _equal(before, after, tolerance):
        diff["changed"][path] = {"before": before, "after": after}


def _equal(before, after, tolerance):
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        return abs(before - after) <= tolerance
    return type(before) is type(after) and before == after


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, 'Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: json_diff(before: object, after: object, ignore: list[str] | None = None, tolerance: float = 0.0) -> dict'
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in [] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(json_diff(**_given), default=repr, ensure_ascii=False))
