"""Secrets that show by their own form: keys and tokens of vendors, private keys, JWT, passwords in URLs and headers.

Forms of vendors' keys: their own documentation, and the public list of GitHub's secret scanning
(https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns).
Secrets known by their field's name alone are found with the fields.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from ..findings import Finding, PiiType
from ..scripts import holds, lowered

_VENDORS = {
    "AWS key id": r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])",
    "GitHub": r"gh[pousr]_[A-Za-z0-9]{30,251}",
    "GitHub, fine-grained": r"github_pat_[A-Za-z0-9_]{40,255}",
    "GitLab": r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_-]{20,200}",
    "Anthropic": r"sk-ant-[A-Za-z0-9_-]{20,300}",
    "OpenAI and others": r"sk-(?:proj-|svcacct-|admin-|or-v1-|lf-)?[A-Za-z0-9_-]{20,300}",
    "Slack": r"xox[abceoprs]-[A-Za-z0-9-]{10,300}",
    "Slack, app": r"xapp-[0-9]-[A-Za-z0-9-]{10,300}",
    "Google API": r"AIza[A-Za-z0-9_-]{35}",
    "Google OAuth": r"(?:ya29\.[A-Za-z0-9_-]{20,500}|GOCSPX-[A-Za-z0-9_-]{20,60}|1//0[A-Za-z0-9_-]{30,200})",
    "Stripe": r"(?:[rsp]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,250}",
    "SendGrid": r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}",
    "Twilio": r"(?:SK|AC)[0-9a-f]{32}(?![0-9A-Za-z])",
    "Mailgun": r"key-[0-9a-f]{32}(?![0-9A-Za-z])",
    "Mailchimp": r"[0-9a-f]{32}-us\d{1,2}(?!\w)",
    "npm": r"npm_[A-Za-z0-9]{36}",
    "PyPI": r"pypi-[A-Za-z0-9_-]{50,400}",
    "RubyGems": r"rubygems_[0-9a-f]{48}",
    "Hugging Face": r"hf_[A-Za-z0-9]{30,60}",
    "DigitalOcean": r"do[opr]_v1_[0-9a-f]{64}",
    "Shopify": r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}",
    "Square": r"(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,50}|EAAA[A-Za-z0-9_-]{50,80})",
    "Telegram bot": r"\d{8,10}:AA[A-Za-z0-9_-]{32,36}(?![A-Za-z0-9_-])",
    "Discord bot": r"[MNO][A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
    "Databricks": r"dapi[0-9a-f]{32}",
    "Grafana": r"gl(?:c|sa)_[A-Za-z0-9_+/=-]{30,200}",
    "HashiCorp Vault": r"hv[sbr]\.[A-Za-z0-9_-]{24,300}",
    "sealab": r"sealab_[0-9A-Za-z]{49}(?![0-9A-Za-z])",
    "Docker": r"dckr_pat_[A-Za-z0-9_-]{20,60}",
    "Notion, Linear, Airtable, Replicate, Figma": r"(?:secret_[A-Za-z0-9]{40,60}|ntn_[A-Za-z0-9]{40,60}|lin_api_[A-Za-z0-9]{32,60}|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|r8_[A-Za-z0-9]{30,50}|figd_[A-Za-z0-9_-]{30,60})",
    "Groq, xAI, Perplexity": r"(?:gsk_[A-Za-z0-9]{40,60}|xai-[A-Za-z0-9]{60,100}|pplx-[A-Za-z0-9]{40,60})",
    "New Relic, Sentry, PlanetScale, Atlassian": r"(?:NRAK-[A-Z0-9]{27}|sntrys_[A-Za-z0-9_=+/-]{40,300}|pscale_(?:tkn|pw)_[A-Za-z0-9_-]{30,60}|ATATT3[A-Za-z0-9_=-]{40,250})",
    "age": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "web hook": r"https://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|[\w-]{1,60}\.webhook\.office\.com)/[A-Za-z0-9_/@-]{20,300}",
    "password hash": r"\$(?:2[abxy]\$\d\d\$[A-Za-z0-9./]{53}|argon2(?:id|i|d)\$[^\s\"',;]{20,300}|[156y]\$[^\s\"':,;]{10,200})",
    "password hash of a web framework": r"(?:pbkdf2_sha256\$\d{1,8}\$[A-Za-z0-9]{4,40}\$[A-Za-z0-9+/=]{40,60}|scrypt:\d{1,8}:\d:\d\$[A-Za-z0-9]{4,40}\$[0-9a-f]{60,140})",
}
# The first characters, looked at before anything else: most positions of a text end here.
_VENDOR = re.compile(r"(?<![A-Za-z0-9_])(?=[A-Za-z0-9$])(?:" + "|".join(_VENDORS.values()) + ")")
# A JSON web token's first part may begin anywhere in a run of its characters: each run is read once.
_RUN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{11,}+(?=\.[A-Za-z0-9_-]{8})")
_WEB_TOKEN_BEGINS = re.compile(r"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{8}")
_WEB_TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{10,2000}+")
_LONGEST_FIRST_PART = 4003
# What the others need, in lower case, to be looked for at all.
_LONG = re.compile(r"[^\s\"',;<>]{13}")
_HEADER_WORDS = ("bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate ")
_COMMAND_WORDS = ("mysql", "mariadb", "login", "sshpass", "sqlplus", "jdbc:", "--secret", "pgpassword")
_CONNECTION_WORDS = ("password", "pwd", "key", "signature", "sig")
_STRONG_WORDS = (
    "pass", "kennwort", "contraseña", "senha", "wachtwoord", "hasło", "secret", "key", "token", "credential", "pin", "otp", "code",
)  # fmt: skip
_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OPENVPN STATIC KEY V1)-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,50}-----")
_PUTTY = re.compile(
    r"(?m)^PuTTY-User-Key-File-\d[^\n]{0,80}\n(?:(?!PuTTY-User-Key-File-)[^\n]{0,200}\n){1,120}?Private-MAC: [0-9a-f]{16,128}"
)
_LONGEST_KEY = 20_000
_IN_URL = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://[^\s:/@'\"]{0,64}:([^\s/'\"]{1,128})@(?=[\w.\[-])")
_HEADER = re.compile(
    r"(?i)(?<![\w-])(?:bearer|basic|token|digest|apikey|negotiate)[ ]{1,3}([A-Za-z0-9._~+/=-]{16,4000})(?![A-Za-z0-9._~+/=-])"
)
_CURL_USER = re.compile(r"(?:(?<=\s)-u|--user)[ =]{0,2}['\"]?[\w.@-]{1,64}:([^\s'\"]{4,128})")
# mysql -u app -pSECRET; docker login -u me -p SECRET; sshpass -p SECRET; scott/SECRET@; config set --secret name SECRET
_COMMAND = re.compile(
    r"\b(?:mysql\w{0,8}|mariadb\w{0,8})\b[^\n]{0,120}?\s-p([^\s'\"-][^\s'\"]{4,64})"
    r"|\blogin\b[^\n]{0,120}?\s(?:-p|--password)[ =]['\"]?([^\s'\"-][^\s'\"]{3,128})"
    r"|\bsshpass\s{1,3}-p\s?['\"]?([^\s'\"]{4,128})"
    r"|\b(?:sqlplus\s|jdbc:oracle:\w{1,8}:)['\"]?[\w.-]{1,40}/([^\s@/'\"]{3,64})@"
    r"|\bset [^\n]{0,60}?--secret[ ]{1,2}[\w:.-]{1,60}[ ]{1,2}['\"]?([^\s'\"]{4,256})"
    r"|\bPGPASSWORD=([^\s'\"]{4,128})"
)
_CONNECTION = re.compile(
    r"(?i)(?<=[;?&]) ?(?:password|pwd|accountkey|sharedaccesskey|sharedaccesssignature|sig)[ ]?=[ ]?([^\s;&\"'<>]{6,256})(?=[;&\"'\s]|\Z)"
)
_STRONG = re.compile(
    r"(?i)\b(?:password|passphrase|passcode|passwort|kennwort|contraseña|mot de passe|senha|wachtwoord|hasło|secret|api key|access key|access token|auth token|"
    r"token|credentials?|pin(?: code)?|otp|one-time code|verification code|security code)\b"
)
_BRIDGE = re.compile(
    r"[\s\"'`:=(*-]{1,6}(?:(?:is|was|are|were|to|of|as|being|set|reset|changed|ist|lautet|es|est|now|code|number|string|value|using|with|for|the|user|account|this)[\s\"'`:=(*-]{1,4}){0,5}"
)
_STATED = re.compile(r"[^\s\"'`,;<>()\[\]{}]{4,128}")
_LEAST_ENTROPY = 3.0


def secrets(text: str) -> Iterator[Finding]:
    """Yield the secrets."""
    lower = lowered(text)
    for match in _VENDOR.finditer(text) if _LONG.search(text) else ():
        if not _is_word(match[0]):
            yield Finding(*match.span(), PiiType.SECRET, 1.0)
    for match in _IN_URL.finditer(text) if "://" in text else ():
        if not match[1].startswith(("$", "{", "<", "%(")) and set(match[1]) != {"*"}:
            yield Finding(*match.span(1), PiiType.SECRET, 1.0)
    for match in _HEADER.finditer(text) if holds(lower, _HEADER_WORDS) else ():
        if _entropy(match[1]) > _LEAST_ENTROPY and _mixed(match[1]):
            yield Finding(*match.span(1), PiiType.SECRET, 0.9)
    for pattern, needed in ((_CURL_USER, ("-u",)), (_COMMAND, _COMMAND_WORDS), (_CONNECTION, _CONNECTION_WORDS)):
        for match in pattern.finditer(text) if holds(lower, needed) else ():
            if not match[match.lastindex or 1].startswith(("$", "{", "<", "%", "(")):
                yield Finding(*match.span(match.lastindex or 1), PiiType.SECRET, 0.9)
    if holds(lower, _STRONG_WORDS):
        yield from _stated(text)


def long_secrets(text: str) -> Iterator[Finding]:
    """Yield private keys and JSON web tokens: no other secret is as long."""
    if "BEGIN " in text or "PuTTY" in text:
        yield from _private_keys(text)
    if "eyJ" in text:
        yield from _web_tokens(text)


def _entropy(text: str) -> float:
    """Return Shannon's _entropy in bits to a character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _private_keys(text: str) -> Iterator[Finding]:
    end = -1
    for begin in _BEGIN.finditer(text):
        if begin.start() < end:
            continue
        close = _END.search(text, begin.end(), begin.end() + _LONGEST_KEY)
        end = close.end() if close else min(len(text), begin.end() + _LONGEST_KEY)
        yield Finding(begin.start(), end, PiiType.SECRET, 1.0)
    for putty in _PUTTY.finditer(text):
        yield Finding(*putty.span(), PiiType.SECRET, 1.0)


def _web_tokens(text: str) -> Iterator[Finding]:
    done = 0
    for run in _RUN.finditer(text):
        least = max(done, run.start(), run.end() - _LONGEST_FIRST_PART)
        # Where one that begins here is none, one that begins later in the run is none either.
        begins = _WEB_TOKEN_BEGINS.search(text, least, run.end())
        token = begins and _WEB_TOKEN.match(text, begins.start())
        if token:
            done = token.end()
            yield Finding(*token.span(), PiiType.SECRET, 1.0)


def _stated(text: str) -> Iterator[Finding]:
    """Yield secrets that a sentence states: `the password is Tr0ub4dor&3`."""
    for keyword in _STRONG.finditer(text):
        yield from _stated_before(text, keyword)
        bridge = _BRIDGE.match(text, keyword.end())
        value = bridge and _STATED.match(text, bridge.end())
        if not value:
            continue
        end = value.end()
        while end > value.start() and text[end - 1] in ".:?":
            end -= 1
        if _could_be_secret(text[value.start() : end], keyword[0]):
            yield Finding(value.start(), end, PiiType.SECRET, 0.8)


def _stated_before(text: str, keyword: re.Match[str]) -> Iterator[Finding]:
    """Yield the secret of a sentence that begins with it: `Tr0ub4dor&3 is the new password`."""
    if not _CLAUSE_ENDS.match(text, keyword.end()):
        return  # `utf8 is the token encoding` states no token
    at = max(0, keyword.start() - _LONGEST_BEFORE)
    words = text[at : keyword.start()].rpartition("\n")[2].split()
    while words and words[-1].lower() in _DETERMINERS:
        words.pop()
    if len(words) < 2 or words[-1].lower() not in _COPULAS:
        return
    said = words[-2].strip("\"'`,;<>()[]{}")
    start = text.rfind(said, at, keyword.start()) if len(said) >= _SHORTEST_STATED else -1
    if start >= 0 and _could_be_secret(said, keyword[0]):
        yield Finding(start, start + len(said), PiiType.SECRET, 0.75)


def _could_be_secret(said: str, keyword: str) -> bool:
    numeric = keyword.lower().startswith(("pin", "otp", "one", "ver", "sec", "pass"))
    return (_mixed(said) and len(said) >= 5 and not _PLAIN.fullmatch(said)) or (
        numeric and said.isdecimal() and 4 <= len(said) <= 10
    )


_LONGEST_BEFORE, _SHORTEST_STATED = 160, 4
_CLAUSE_ENDS = re.compile(r"[\"'`]?(?:[ ]{0,2}(?:[.,;:!?)\n]|\Z)|[ ](?:for|of|on|to|in|and|but|now|so|at|as)\b)")
_COPULAS = frozenset("is was are ist war es est era è é".split())
_DETERMINERS = frozenset(
    "my the your our his her their its a an this that new old current temporary correct default initial admin root user account login wifi wi-fi "
    "mein dein das der die la le el il mon ma mi tu".split()
)
# Words, identifiers, versions, file names, expressions, links, dates and e-mail addresses are not passwords.
_PLAIN = re.compile(
    r"v\d+(?:\.\d+){1,4}|[A-Za-z]+(?:[_.-][A-Za-z]+)*\d{0,2}|[\d.,:%/-]+[a-zA-Z]{0,3}|[\w.-]+\.(?:py|js|ts|go|md|json|ya?ml|txt|com|org|io|html?)|.*://.*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[\w.]+=.*|\$.*|--?[\w-]+|#\d+|.*\\.*|\w+@\w+:.*|[A-Z_]+\d*"
)


def _mixed(text: str) -> bool:
    """Return whether letters stand with digits or signs, as in what nobody would write as a word."""
    return any(map(str.isalpha, text)) and any(not c.isalpha() and c not in "-_." for c in text)


def _is_word(text: str) -> bool:
    """Return whether what looks like a vendor's key is words: `sk-learn-based-classification-model`."""
    body = text.partition("-")[2] if text.startswith("sk-") else ""
    return bool(body) and not any(map(str.isdigit, body)) and _entropy(body) < 4.2
