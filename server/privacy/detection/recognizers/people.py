"""People, their mail addresses and accounts, where a text's form names them: beside each other, as speakers, signing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding, PiiType
from ..keys import is_company, is_label, looks_like_full_name
from ..lists import EVERYDAY, PLAIN_WORDS, SMALL
from ..ner.words import MODE_OF_FILE, SMALL_FAMILIES, SMALL_GIVEN
from ..scripts import holds, lowered

_SIGN = re.compile("@")
_AT = re.compile(r"@|%40|\\u0040|&#64;|\s?[\[(](?:at|AT)[\])]\s?")
_SPELLED = ("%40", "\\u0040", "&#64;", "at]", "at)", "AT]", "AT)")
_LOCAL_HERE = frozenset(".+_-%'&~")
_LONGEST_LOCAL = 64
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.){{1,8}}(?:[^\W\d_]{{2,24}}|xn--[a-z0-9-]{{2,59}})(?![\w-])")
_SPELLED_DOMAIN = re.compile(r"[a-z0-9-]{2,40}(?:\.|\s?[\[(](?:dot|DOT)[\])]\s?)[a-z]{2,24}\b")
_BARE_HOST = re.compile(r"(?:localhost|[a-z][a-z0-9-]{2,30})(?=[>\"'\s,;)]|\Z)")
_IP_LITERAL = re.compile(r"\[(?:\d{1,3}\.){3}\d{1,3}\]")
# An address in form only: who fetches code by SSH, and the identifiers of messages.
_NO_PERSON = frozenset(("git", "hg", "svn"))
_MESSAGE_ID = re.compile(
    r"(?i)(?:message-id|in-reply-to|references|content-id|msgid)[\"']?\s{0,4}[:=][^\n:]{0,300}\Z|\bid <\Z"
)
_IDENTIFIER_STARTS = re.compile(r"<[^\s<>@]{0,80}\Z")
_LONGEST_HEADER = 400


def emails(text: str) -> Iterator[Finding]:
    """Yield the e-mail addresses."""
    for at in (_AT if holds(text, _SPELLED) else _SIGN).finditer(text):
        spelled = at[0] not in ("@", "%40", "\\u0040", "&#64;")
        start = _local_start(text, at.start())
        if start == at.start():
            continue
        domain = (_SPELLED_DOMAIN if spelled else _DOMAIN).match(text, at.end()) or _IP_LITERAL.match(text, at.end())
        score = 1.0
        if domain is None:
            domain = _BARE_HOST.match(text, at.end())
            named = "." in text[start : at.start()] and text[max(start - 1, 0)] in "\"'"
            if domain is None or not (named or text.startswith("<", max(start - 1, 0))):
                continue
            score = 0.7
        if text[start : at.start()] in _NO_PERSON and text.startswith((":", "/"), domain.end()):
            continue
        if identified := _IDENTIFIER_STARTS.search(text, max(0, start - 80), start):
            opens = identified.start() + 1
            if _MESSAGE_ID.search(text, max(0, opens - _LONGEST_HEADER), opens):
                continue
        yield Finding(start, domain.end(), PiiType.EMAIL, score)


def _local_start(text: str, end: int) -> int:
    start = end
    least = max(0, end - _LONGEST_LOCAL)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in _LOCAL_HERE):
        start -= 1
    while start < end and not (text[start].isalnum() or text[start] == "_"):
        start += 1
    return start


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
_PERSONS_PAGE = re.compile(
    r"(?<=/)(?:contacts?|people|persons?|profiles?|users?|members?|authors?|employees?|staff|patients?|customers?|clients?|candidates?)/"
    r"([a-z]{2,24}[._-][a-z]{2,24}(?:[._-][a-z]{2,24})?)(?![\w.-])"
)
_POSTER = re.compile(r"(?m)^([a-z]{2,24}[._][a-z]{2,24})(?= {1,4}\d{1,2}:\d\d(?: ?[AaPp][Mm])?$)")
_OF_PAGES = frozenset(
    "edit new add delete remove profile settings list view show create update search login sign export import invite".split()
)
_NO_PERSONS_PAGE = PLAIN_WORDS | _OF_PAGES
_HASHED = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]{2,31}):(?=\$[0-9a-z]{1,5}\$)")
_SUDO = re.compile(r"(?<!\w)sudo(?:\[\d{1,7}\])?:[ ]{1,6}([a-z][\w.-]{2,31})[ ]:")
_ACCESS_LOG = re.compile(r"(?m)^[\da-fA-F.:]{7,39} [\w.-]{1,30} ([A-Za-z][\w.@-]{2,40}) \[\d\d/\w{3}/\d{4}:")
_SSH_TARGET = re.compile(
    r"(?<!\w)(?:ssh|scp|sftp|rsync)[ ](?:-\w[ ]?[\w./~-]{0,60}[ ]){0,4}([a-z][\w.-]{2,31})@(?=[\w.-])"
)
_HANDLE = re.compile(r"(?<![\w.@/=+-])@([A-Za-z][\w-]{1,30}(?:\.[\w-]{1,30}){0,2})(?![\w@/(=]|\.\w)")
_GREETED = re.compile(
    r"(?i)(?:\b(?:hi|hey|hello|cc|thanks|thx|ping|by|and|with|ask|from|to|fyi|hallo|danke|hola|gracias|merci|bonjour|ciao),? )\Z"
)
_LONGEST_GREETING = 10
_TWO_WORDS = re.compile(r"([^\W\d_]{3,24})[._-]([^\W\d_]{3,24})")
_SLACK = re.compile(r"<@[A-Z0-9]{2,12}\|([\w.-]{3,40})>")
_LISTED = re.compile(rf"(?m)^{MODE_OF_FILE} +\d{{1,7}} ([A-Za-z][\w.-]{{2,31}}) ")
_PASSWD = re.compile(r"(?m)^([a-z][\w.-]{2,31}):[x*!]?:[1-9]\d{3,6}:\d{1,7}:")
_EXTENSION = re.compile(
    r"(?i)\.(?:pdf|docx?|odt|rtf|xlsx?|ods|csv|pptx?|txt|eml|msg|vcf|ics|jpe?g|png|heic|tiff?|zip|mp[34]|m4a|wav)(?!\w)"
)
_STEM = re.compile(r"(?:[^\W\d_][\w'’-]{0,30} ){0,4}[\w.'’-]{1,80}\Z")
_LONGEST_STEM = 80
_NAME_PARTS = re.compile(r"[A-ZÀ-Þ]?[a-zß-ÿāăąćčđēęěłńňőřśšşţťůűźżžğı'’]+|[A-ZÀ-Þ]+")
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
        (_SLACK, 0.8, ("<@",)),
        (_LISTED, 0.7, ("rw", "r-")),
        (_PASSWD, 0.8, ("/home/", "/Users/")),
    ):
        # Most texts hold none of these: the search costs more than the look.
        for match in pattern.finditer(text) if holds(text, needed) else ():
            if match[1].lower() not in _SYSTEM:
                yield Finding(*match.span(1), PiiType.USERNAME, score)
    for pattern, mark in ((_PERSONS_PAGE, "/"), (_POSTER, ":")):
        for match in pattern.finditer(text) if mark in text else ():
            if not _NO_PERSONS_PAGE.intersection(re.split("[._-]", match[1])):
                yield Finding(*match.span(1), PiiType.USERNAME, 0.6)


def _named_in(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return where in the name of a file or an account that of a person stands: a given name beside another word."""
    parts = [(part.start(), part.end(), part[0].lower()) for part in _NAME_PARTS.finditer(text, start, end)]
    for at, (first, last, said) in enumerate(parts):
        if said not in SMALL_GIVEN:
            continue
        following = at + 1
        while following < len(parts) - 1 and (len(parts[following][2]) == 1 or parts[following][2] in SMALL_GIVEN):
            following += 1
        if following < len(parts) and _may_name(parts[following][2]):
            return first, parts[following][1]
        if at and _may_name(parts[at - 1][2]):
            return parts[at - 1][0], last
    parts = [part for part in parts if part[0] > text.rfind(" ", start, end)]
    others = [part for part in parts if part[2] not in _OF_FILES]
    is_theirs = len(others) == _FULL < len(parts) and others[0][1] + 1 == others[1][0]
    if is_theirs and all(text[first].isupper() and _may_name(word) for first, _, word in others):
        return others[0][0], others[1][1]  # Invoice_Jane_Roe: what is no kind of paper is two names
    return None


_FULL = 2


def _may_name(word: str) -> bool:
    return len(word) > 1 and word not in PLAIN_WORDS and word not in _OF_FILES


_OF_FILES = frozenset(
    "cv resume resumé lebenslauf invoice rechnung facture factura fattura faktura contract vertrag contrat contrato contratto offer angebot scan copy kopie final draft "
    "signed unterschrift report bericht rapport informe foto photo img image report receipt quittung reçu recibo letter brief lettre carta statement payslip lohn kündigung kuendigung bewerbung arztbrief antrag gutachten application certificate zeugnis".split()
)


def handles(text: str) -> Iterator[Finding]:
    """Yield accounts behind an `@`, and people in names of files, where a given name shows them."""
    for match in _HANDLE.finditer(text) if "@" in text else ():
        if _named_in(text, *match.span(1)) or _is_run_together(match[1].lower()) or _is_greeted(text, match):
            yield Finding(*match.span(1), PiiType.USERNAME, 0.7)
    for match in _EXTENSION.finditer(text) if "." in text else ():
        first = max(text.rfind("\n", 0, match.start()) + 1, match.start() - _LONGEST_STEM)
        stem = _STEM.search(text, first, match.start())
        if stem and (named := _named_in(text, *stem.span())):
            yield Finding(*named, PiiType.PERSON, 0.65)


def _is_greeted(text: str, handle: re.Match[str]) -> bool:
    """Return whether two words that are no everyday ones stand where somebody is spoken to: `hi @jane_roe`."""
    words = _TWO_WORDS.fullmatch(handle[1])
    return (
        words is not None
        and _may_name(words[1].lower())
        and _may_name(words[2].lower())
        and _GREETED.search(text, max(0, handle.start() - _LONGEST_GREETING), handle.start()) is not None
    )


def _is_run_together(handle: str) -> bool:
    return any(handle[:at] in SMALL_GIVEN and handle[at:] in SMALL_FAMILIES for at in range(3, len(handle) - 2))


_UPPER = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĢĪĶĹĽŁŃŅŇŌŐŘŚŞŠŢŤŪŮŰŹŻŽİ"
# A point behind a longer word than `Jr` or `Wm` ends a sentence.
_POINT = r"(?:(?<![^\W\d_]{3})(?<![aeiouy])\.)?"
_NAME_WORD = rf"[{_UPPER}][^\W\d_]{{0,24}}(?:[.'’-](?!s\b)[^\W\d_]{{1,24}}){{0,2}}{_POINT}"
_PARTICLE = r"(?:de|van|von|der|den|da|la|del|di|bin|al|dos|y|el|du|ibn|ter|ten|te|des|do|das|zu)"
_NAME = rf"{_NAME_WORD}(?:[ ](?:{_PARTICLE}[ ]){{0,2}}{_NAME_WORD}){{0,3}}"
_FULL_NAME = rf"{_NAME_WORD}(?:[ ](?:{_PARTICLE}[ ]){{0,2}}{_NAME_WORD}){{1,3}}"
_BESIDE_MAIL = re.compile(
    r"(?m)(?:^|[:;,(>]|(?<=\bby)|(?<=\bto)|(?<=\bfrom)|(?<=\bcc))[ \t]{0,8}[\"']?((?:[^\W\d_][\w.'’-]{0,30}[ ,]{1,2}){0,4}[^\W\d_][\w.'’-]{0,30})[\"']?[ ]{0,2}(?:<|\(|\[|&lt;)"
)
_NO_LAST_NAMES = SMALL | {"id"}
_INLINE_MAIL = re.compile(rf"(?<!\w)({_FULL_NAME})[ ]{{0,2}}(?:<|\(|\[|&lt;)")
_OPENS = re.compile(r"(?:<|\(|\[|&lt;)(?=[\w.+%'-]{1,64}@)")
_LONGEST_BESIDE = 200
_NO_NAMES = frozenset(("mailto", "email", "mail", "e-mail", "from", "to", "cc", "at", "or", "contact", "by"))
_SPEAKER = re.compile(
    rf"(?m)^[ \t]{{0,8}}(?:[\[(<]?[\d:./, TZ-]{{4,30}}(?:[ap]m|AM|PM)?[\])>]?[ \t-]{{1,4}})?[<*_]{{0,2}}({_FULL_NAME})[>*_]{{0,2}}(?:[ ](?:\([\w ]{{1,20}}\)|\[?\d\d?:\d\d(?:[ ]?[AP]M)?\]?))?[ ]?:[*_]{{0,2}}(?=[ \t]|\Z)"
)
_STAMPED_SPEAKER = re.compile(
    rf"(?m)^[ \t]{{0,8}}[\[(]?(?:\d{{4}}-\d\d-\d\d[T ])?\d\d?:\d\d(?::\d\d)?(?:[ ]?[AP]M)?[\])]?[ \t-]{{1,4}}<?({_NAME})>?:(?=[ \t]|\Z)"
)
_ADDRESSED = re.compile(
    rf"(?m)(?:^|[>\"\n])[ \t]{{0,8}}(?:Hi|Hello|Hey|Dear|Good (?:morning|afternoon|evening)|Hallo|Liebe[rs]?|Guten Tag|Bonjour|Cher|Chère|Hola|Estimad[oa]|Querid[oa]|Ciao|Caro|Cara|Gentile|Egregio|Olá|Oi|Prezad[oa]|Car[oa]s?|Beste|Geachte|Dag|Hej|Cześć|Szanown[ya]|Drog[ia])"
    rf"(?: (?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|Herrn|Monsieur|Madame|Sr|Sra|[Ss]eñora?|[Ss]ignora?|[Ss]enhora?|mevrouw|meneer|heer|Pani?|Panie)\.?){{0,2}} ((?:{_PARTICLE}[ ]){{0,2}}{_NAME})(?=[ ]?[,!\n:–—]|\Z)"
)
_SIGNED = re.compile(
    rf"(?mi:^[ \t>]{{0,8}}(?:best|kind|warm|many thanks|thanks|thank you|regards|(?:best|kind|warm(?:est)?) (?:regards|wishes)|cheers|sincerely|yours(?: sincerely| truly| faithfully)?|all the best|viele grüße|mit freundlichen grüßen|beste grüße|lg|mfg|cordialement|bien à vous|saludos|un saludo|atentamente|cordiali saluti|grazie|saluti|atenciosamente|abraços|um abraço|groeten|groetjes|pozdrawiam|z poważaniem|serdecznie pozdrawiam|salutations|met vriendelijke groet|hälsningar|mvh)[,.!]?[ ]?(?:\r?\n[ \t>]{{0,8}}){{1,3}}(?:--[ ]?\n)?)({_NAME})[ ]?(?=\r?\n|\Z)"
)
_TITLED = re.compile(
    rf"(?<!\w)(?:Mr|Mrs|Ms|Mx|Dr|Prof|Sir|Miss|Herrn?|Frau|Mme|Mlle|Monsieur|Madame|Señora?|Sr|Sra|Signora?|Dott|Ing|Rev|Hon|Capt|Sgt|Lt|Col)\.? (?:(?:Dr|Prof)\.? ){{0,2}}((?:{_PARTICLE}[ ]){{0,2}}{_NAME})"
)
_TITLED_CAPITALS = re.compile(
    rf"(?<![\w/])(?<![A-Z] )(?:MRS?|MISS|HERRN?|FRAU)\.? ([{_UPPER}'’-]{{2,24}}(?: [{_UPPER}'’-]{{2,24}}){{1,3}})\b"
)
_INTRODUCED = re.compile(
    rf"(?i:\b(?:my|her|his|their|your|full|the) (?:full |maiden |last |first |middle )?name(?: is|['’]s|:| was)|\bname['’]s|\bI am called|\bmein name ist|\bich heiße|\bje m['’]appelle|\bme llamo|\bmi chiamo|\bmeu nome é|\bsigned[- ]off[- ]by:|\bc/o|\battn:?|\bwritten by|\bauthored by|\breported by|\bassigned to|\bpayable to|\bpay to the order of)[ \t\n]{{1,3}}({_NAME})"
)
# What the others need, in lower case, to be looked for at all.
_GREETINGS = (
    "hi ", "hello ", "hey ", "dear ", "good ", "hallo ", "liebe", "guten ", "bonjour ", "cher", "chère ", "hola ", "estimad", "querid", "ciao ", "caro ", "cara ",
    "gentile ", "egregio ", "olá ", "oi ", "prezad", "beste ", "geachte ", "dag ", "hej ", "cześć ", "szanown", "drog",
)  # fmt: skip
_INTRODUCTIONS = (
    "name is", "name's", "name’s", "name:", "name was", "mein name", " called", "heiße", "appelle", "llamo", "chiamo", "meu nome", "-off-by", "c/o", "attn", "written by", "authored by", "reported by", "assigned to",
    "payable to", "order of", "off by:",
)  # fmt: skip
_BOOKED = re.compile(
    r"(?:(?<![\w/.-])|(?<=[ \n]\d\.))[A-Z]{2,24}/[A-Z]{2,24}(?: [A-Z]{1,24})? ?(?:MR|MRS|MS|MSTR|MISS|DR)\b"
)
_BILLED = re.compile(
    rf"(?i:\b(?:bill(?:ed)?|ship(?:ped)?|sold|invoiced?|deliver(?:ed)?|wire \S{{1,12}} \S{{1,16}}|pay|transfer|refund(?:ed)?)) (?i:to):?[ \t\n]{{1,3}}({_FULL_NAME})(?![.\w]| \d)"
)
_NO_SPEAKER = frozenset(
    "Note Warning Error Info Debug Example Usage Returns Return Args Raises Parameters Todo Fixme Summary Description Question Answer Subject Status Total "
    "Traceback Exception Exit Default Options Option See Also New Next Step Last First Full Due Content Type Date Time Location Place Address Phone Bill Ship "
    "Payment Order Account Customer Client Invoice Project Contact Line Item Action Items Key Points Follow Open Known Issues Build Test Run Runtime "
    "Python Java Windows Linux Set Get Put Post Accept Cache Control User Agent Host Server Connection Transfer Encoding Message Chat Meeting Agenda Notes Attendees "
    "Service Your Our Ihr Ihre Unser Unsere Votre Notre Vuestro Nuestro Read More Ref Reference Chapter Section Table Figure Appendix Important Tip Caution Attention Please Thanks Hello Team All Everyone Support Sales".split()
)
_CARD_LINE = re.compile(
    r"(?mi)^(?:[\w-]{1,20}\.)?(N|FN|TEL|ADR|BDAY|ORGANIZER|ATTENDEE|NICKNAME)((?:;[^:\n]{0,300})?):([^\r\n]{1,500})"
)
_COMMON_NAME = re.compile(r"CN=\"?([^\";:]{1,80})")
_PARTS = re.compile(r"[^;,]{1,200}")
_HL7 = re.compile(r"(?m)^(?:PID|NK1|GT1|IN1|PV1|MRG|STF)\|[^\r\n]{0,2000}")
_HL7_NAME = re.compile(
    r"(?<=[|~])(?:\d{0,12}\^)?([^\W\d_][\w'’ -]{1,40}\^[^\W\d_][\w'’ -]{0,40}(?:\^[^\W\d_][\w'’. -]{0,20})?)(?=[|~^])"
)
_HL7_BORN = re.compile(r"\|((?:19|20)\d{6})\|[FMOUAN]?\|")
_VERSUS = re.compile(rf"({_NAME_WORD}) \./\. ({_NAME})")
_STATED = re.compile(r"(?:(?<=\?3[23])|(?<=/NAME/))[^?/\r\n]{3,60}")
_STATED_ACCOUNT = re.compile(r"(?m)^:25:([^\r\n]{5,40})")
_PEDIGREE = re.compile(r"(?m)^[1-9] (?:NAME|GIVN|SURN|NICK|_MARNM) [^\r\n]{1,80}")
_PEDIGREE_NAME = re.compile(r"(?<=[ /])[^\W\d_][^/\r\n]{0,60}[^/\s]")
_PEDIGREE_BORN = re.compile(r"(?m)^1 BIRT[^\n]{0,80}\n(?:[2-9] (?!DATE)[^\n]{0,200}\n){0,6}2 DATE ([^\r\n]{4,40})")
_POSTED = re.compile(rf"(?m)^({_FULL_NAME})[ ]{{2}}\d\d?:\d\d(?:[ ]?[AP]M)?[ ]*$(?=\n[^\n])")
_DISTINGUISHED = re.compile(
    r"(?i)(?<![\w])cn=([^,;\"'<>=/\n]{3,60})(?=,\s{0,2}(?:ou|o|dc|c|l|st|email\w{0,10})=|/(?:O|OU|emailAddress)=)"
)


def people(text: str) -> Iterator[Finding]:
    """Yield names that the form of the text around them shows."""
    if "@" in text:
        for match in _beside_mails(text):
            said = match[1].lower()
            if (
                said not in _NO_NAMES
                and not EVERYDAY.issuperset(said.split())
                and said.split()[-1] not in _NO_LAST_NAMES
            ):
                yield Finding(*match.span(1), PiiType.PERSON, 0.8)
    lower = lowered(text)
    for match in _SPEAKER.finditer(text) if ":" in text else ():
        if not set(match[1].split()) & _NO_SPEAKER and looks_like_full_name(match[1]) and not is_label(match[1]):
            yield Finding(*match.span(1), PiiType.PERSON, 0.7)
    for pattern, score, needed in (
        (_STAMPED_SPEAKER, 0.7, (":",)),
        (_ADDRESSED, 0.75, _GREETINGS),
        (_SIGNED, 0.75, ("\n",)),
        (_TITLED, 0.7, (" ",)),
        (_TITLED_CAPITALS, 0.7, ("mr", "miss ", "herr", "frau ")),
        (_INTRODUCED, 0.7, _INTRODUCTIONS),
        (_BILLED, 0.7, (" to ", " to:", " to\t", " to\n")),
    ):
        for match in pattern.finditer(text) if holds(lower, needed) else ():
            if match[1].split()[0] not in _NO_SPEAKER and not EVERYDAY.issuperset(match[1].lower().split()):
                yield Finding(*match.span(1), PiiType.PERSON, score)
    for segment in _HL7.finditer(text) if "^" in text else ():
        # HL7 version 2.5.1, chapter 2A: the components of an XPN or XCN, family name first.
        for name in _HL7_NAME.finditer(text, *segment.span()):
            yield Finding(*name.span(1), PiiType.PERSON, 0.8)
        for born in _HL7_BORN.finditer(text, *segment.span()):
            yield Finding(*born.span(1), PiiType.DATE_OF_BIRTH, 0.8)
    for match in _BOOKED.finditer(text) if "/" in text else ():
        yield Finding(*match.span(), PiiType.PERSON, 0.85)
    for match in _DISTINGUISHED.finditer(text) if "cn=" in lower else ():
        if looks_like_full_name(match[1]):
            yield Finding(*match.span(1), PiiType.PERSON, 0.75)
    if "begin:v" in lower:
        yield from _contact_cards(text)
    for match in _POSTED.finditer(text) if "  " in text else ():
        if looks_like_full_name(match[1]):
            yield Finding(*match.span(1), PiiType.PERSON, 0.65)
    for match in _VERSUS.finditer(text) if " ./. " in text else ():
        yield from (Finding(*match.span(group), PiiType.PERSON, 0.7) for group in (1, 2))
    yield from _statements(text) if ":86:" in text else ()
    yield from _pedigrees(text) if "1 NAME " in text and "0 HEAD" in text else ()


def _statements(text: str) -> Iterator[Finding]:
    """Read the account of a statement of SWIFT's MT940 and its partners, as banks write them in field 86."""
    for match in _STATED.finditer(text):
        if not is_company(match[0]):
            yield Finding(*match.span(), PiiType.PERSON, 0.7)
    for match in _STATED_ACCOUNT.finditer(text):
        yield Finding(*match.span(1), PiiType.BANK, 0.8)


def _pedigrees(text: str) -> Iterator[Finding]:
    """Read the names and dates of birth of GEDCOM 5.5.1 (its lines `NAME Jane /Roe/`)."""
    for line in _PEDIGREE.finditer(text):
        for name in _PEDIGREE_NAME.finditer(text, line.start() + len("1 NAME"), line.end()):
            yield Finding(*name.span(), PiiType.PERSON, 0.85)
    for born in _PEDIGREE_BORN.finditer(text):
        yield Finding(*born.span(1), PiiType.DATE_OF_BIRTH, 0.85)


def _beside_mails(text: str) -> Iterator[re.Match[str]]:
    """Yield matches whose first group stands before a mail address in brackets."""
    for opens in _OPENS.finditer(text):
        for pattern in (_BESIDE_MAIL, _INLINE_MAIL):
            for match in pattern.finditer(text, max(0, opens.start() - _LONGEST_BESIDE), opens.end()):
                if match.end() == opens.end():
                    yield match


def _contact_cards(text: str) -> Iterator[Finding]:
    """Read the lines of vCard (RFC 6350) and iCalendar (RFC 5545) that name people."""
    kinds = {
        "N": PiiType.PERSON,
        "FN": PiiType.PERSON,
        "NICKNAME": PiiType.USERNAME,
        "TEL": PiiType.PHONE,
        "ADR": PiiType.ADDRESS,
        "BDAY": PiiType.DATE_OF_BIRTH,
    }
    for line in _CARD_LINE.finditer(text):
        name, start = line[1].upper(), line.start(3)
        if name in ("N", "ADR"):
            for part in _PARTS.finditer(line[3]):
                yield Finding(start + part.start(), start + part.end(), kinds[name], 0.85)
        elif name in kinds:
            skipped = len("tel:") if line[3].startswith("tel:") else 0
            yield Finding(start + skipped, line.end(3), kinds[name], 0.9)
        elif common := _COMMON_NAME.search(line[2]):
            yield Finding(line.start(2) + common.start(1), line.start(2) + common.end(1), PiiType.PERSON, 0.9)
