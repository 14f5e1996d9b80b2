"""Names of accounts where the text's form shows them: log lines of logins, home folders, profile links, handles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding, PiiType
from .prefilter import holds

_LOGIN = re.compile(
    r"(?<!\w)(?:for(?: invalid)?(?: user)?|(?:invalid )?user|acct|login|account|USER|session opened for user|session closed for user)[ =](?:user )?[\"']?([A-Za-z][\w.-]{2,31})[\"']?"
    r"(?= from |[ ]{1,2}by |\(uid| logged| failed| authenticated| has | signed| ?; ?TTY| rhost)"
)
_AFTER_LOGIN = ("from ", " by ", "(uid", " logged", " failed", " authenticated", " has ", " signed", "TTY", " rhost")
_DIRECTORY = re.compile(r"(?i)(?<!\w)uid=([\w.-]{3,40})(?=,\s?(?:ou|dc|cn|o)=)")
_HOME = re.compile(
    r"(?:(?<![\w.])/home/|(?<![\w.])/Users/|(?<![A-Za-z])[A-Z]:\\{1,2}Users\\{1,2})([A-Za-z][\w.-]{1,30})(?![\w.-])"
)
_PROFILE = re.compile(
    r"(?<![\w.-])(?:www\.)?(?:github\.com|gitlab\.com|twitter\.com|x\.com|linkedin\.com/in|t\.me|instagram\.com|facebook\.com|medium\.com|keybase\.io|tiktok\.com)/@?([A-Za-z][\w.-]{2,38})(?=[\s\"'<),]|[?#]|/?(?:\s|\Z)|\Z)"
)
_HASHED = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]{2,31}):(?=\$[0-9a-z]{1,5}\$)")
_SUDO = re.compile(r"(?<!\w)sudo(?:\[\d{1,7}\])?:[ ]{1,6}([a-z][\w.-]{2,31})[ ]:")
_ACCESS_LOG = re.compile(r"(?m)^[\da-fA-F.:]{7,39} [\w.-]{1,30} ([A-Za-z][\w.@-]{2,40}) \[\d\d/\w{3}/\d{4}:")
_SSH_TARGET = re.compile(
    r"(?<!\w)(?:ssh|scp|sftp|rsync)[ ](?:-\w[ ]?[\w./~-]{0,60}[ ]){0,4}([a-z][\w.-]{2,31})@(?=[\w.-])"
)
_SYSTEM = frozenset(
    "root invalid user from admin ubuntu debian ec2-user git www-data nobody daemon shared public runner jenkins postgres mysql app node "
    "guest test default service unknown the this that all features topics about pricing orgs marketplace sponsors settings login share intent status".split()
)


def accounts(text: str) -> Iterator[Finding]:
    """Yield the names of people's accounts."""
    for pattern, score, needed in (
        (_LOGIN, 0.8, _AFTER_LOGIN),
        (_DIRECTORY, 0.8, ("=",)),
        (_HOME, 0.6, ("/home/", "Users")),
        (_PROFILE, 0.7, (".com/", "t.me/", ".io/")),
        (_SUDO, 0.8, ("sudo",)),
        (_HASHED, 0.8, (":$",)),
        (_ACCESS_LOG, 0.75, (" [",)),
        (_SSH_TARGET, 0.7, ("@",)),
    ):
        # Most texts hold none of these: the search costs more than the look.
        for match in pattern.finditer(text) if holds(text, needed) else ():
            if match[1].lower() not in _SYSTEM:
                yield Finding(*match.span(1), PiiType.USERNAME, score)
