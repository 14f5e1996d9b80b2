"""What changed in a repository, by author and day, with the time at which that was found out."""

import asyncio
import re


async def project_changes(repo_path: str, timezone: str = "UTC", max_count: int = 50) -> dict:
    """Summarise the last commits of a git repository: by author, by day, and their subjects.

    It asks two upstream servers at once: git (git_log) and time (get_current_time).

    Args:
        repo_path: The folder of the repository, as the git server sees it.
        timezone: The IANA name of the time zone for the time of the report.
        max_count: How many commits to look at.

    Returns:
        {repository, reported_at, commits, authors: {name: count}, days: {date: count}, subjects}
    """
    log, now = await asyncio.gather(
        tools.git.git_log(repo_path=repo_path, max_count=max_count),
        tools.time.get_current_time(timezone=timezone),
    )
    authors: dict[str, int] = {}
    days: dict[str, int] = {}
    subjects = []
    for commit in re.split(r"^(?=Commit: )", log if isinstance(log, str) else "\n".join(log), flags=re.MULTILINE):
        fields = dict(re.findall(r"^(Commit|Author|Date|Message): ?(.*)$", commit, re.MULTILINE))
        if "Commit" not in fields:
            continue
        author = re.sub(r'^<git\.Actor "|\s*<.*$|[\'"]', "", fields.get("Author", "")).strip()
        authors[author] = authors.get(author, 0) + 1
        day = fields.get("Date", "").strip("'\"")[:10]
        days[day] = days.get(day, 0) + 1
        subjects.append(fields.get("Message", "").strip("'\""))
    return {
        "repository": repo_path,
        "reported_at": now["datetime"],
        "commits": len(subjects),
        "authors": dict(sorted(authors.items(), key=lambda pair: (-pair[1], pair[0]))),
        "days": days,
        "subjects": subjects,
    }


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, "Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: async project_changes(repo_path: str, timezone: str = 'UTC', max_count: int = 50) -> dict"
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in ['repo_path', 'timezone'] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(__import__('asyncio').run(project_changes(**_given)), default=repr, ensure_ascii=False))
