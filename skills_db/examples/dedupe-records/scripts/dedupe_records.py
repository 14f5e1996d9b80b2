"""Remove records that say the same."""

import json
import unicodedata
from typing import Literal


def dedupe_records(
    records: list[dict],
    keys: list[str] | None = None,
    keep: Literal["first", "last", "fullest"] = "first",
    fold: bool = True,
) -> dict:
    """Remove duplicate records, by all or some fields.

    Args:
        records: The records.
        keys: The fields that make two records the same; all of them when not given.
        keep: Which one to keep: the first, the last, or the one with the most fields filled.
        fold: Whether case, accents and spaces at the ends are ignored when texts are compared.

    Returns:
        {records, kept, removed, groups: [{key, count}]}, the groups with more than one record
    """
    groups: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        names = sorted(record) if keys is None else keys
        key = [[name, _plain(record.get(name), fold)] for name in names]
        groups.setdefault(json.dumps(key, ensure_ascii=False, default=str), []).append(index)
    kept = sorted(_chosen(records, indexes, keep) for indexes in groups.values())
    repeated = [
        {"key": {name: value for name, value in json.loads(key)}, "count": len(indexes)}
        for key, indexes in groups.items()
        if len(indexes) > 1
    ]
    return {
        "records": [records[index] for index in kept],
        "kept": len(kept),
        "removed": len(records) - len(kept),
        "groups": repeated,
    }


def _chosen(records: list[dict], indexes: list[int], keep: str) -> int:
    if keep == "last":
        return indexes[-1]
    if keep == "fullest":
        return max(indexes, key=lambda index: (sum(value not in (None, "") for value in records[index].values()), -index))
    return indexes[0]


def _plain(value, fold):
    if not fold or not isinstance(value, str):
        return value
    text = unicodedata.normalize("NFKD", value)
    return "".join(char for char in text if not unicodedata.combining(char)).casefold().strip()


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, "Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: dedupe_records(records: list[dict], keys: list[str] | None = None, keep: Literal['first', 'last', 'fullest'] = 'first', fold: bool = True) -> dict"
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in ['keep'] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(dedupe_records(**_given), default=repr, ensure_ascii=False))
