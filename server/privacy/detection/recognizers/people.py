"""People where a text's form names them: beside their mail address, as speakers, addressed, signing, in contact cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..fields.judging import is_label
from ..fields.name_keys import looks_like_full_name
from ..findings import Finding, PiiType
from .prefilter import holds, lowered

_UPPER = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĢĪĶĹĽŁŃŅŇŌŐŘŚŞŠŢŤŪŮŰŹŻŽİ"
_NAME_WORD = rf"[{_UPPER}][^\W\d_]{{0,24}}(?:[.'’-](?!s\b)[^\W\d_]{{1,24}}){{0,2}}\.?"
_PARTICLE = r"(?:de|van|von|der|den|da|la|del|di|bin|al|dos|y|el|du|ibn|ter|zu)"
_NAME = rf"{_NAME_WORD}(?:[ ](?:{_PARTICLE}[ ]){{0,2}}{_NAME_WORD}){{0,3}}"
_FULL_NAME = rf"{_NAME_WORD}(?:[ ](?:{_PARTICLE}[ ]){{0,2}}{_NAME_WORD}){{1,3}}"
_BESIDE_MAIL = re.compile(
    r"(?m)(?:^|[:;,(>]|(?<=\bby)|(?<=\bto)|(?<=\bfrom)|(?<=\bcc))[ \t]{0,8}[\"']?((?:[^\W\d_][\w.'’-]{0,30}[ ,]{1,2}){0,4}[^\W\d_][\w.'’-]{0,30})[\"']?[ ]{0,2}(?:<|\(|\[|&lt;)"
)
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
    rf"(?m)(?:^|[>\"\n])[ \t]{{0,8}}(?:Hi|Hello|Hey|Dear|Good (?:morning|afternoon|evening)|Hallo|Liebe[rs]?|Guten Tag|Bonjour|Cher|Chère|Hola|Estimad[oa]|Querid[oa]|Ciao|Caro|Cara|Gentile|Olá|Prezad[oa]|Beste|Hej|Cześć)"
    rf"(?: (?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|Herrn|Monsieur|Madame|Sr|Sra|Señora?|Signora?)\.?){{0,2}} ({_NAME})(?=[ ]?[,!\n:–—]|\Z)"
)
_SIGNED = re.compile(
    rf"(?mi:^[ \t>]{{0,8}}(?:best|kind|warm|many thanks|thanks|thank you|regards|(?:best|kind|warm(?:est)?) (?:regards|wishes)|cheers|sincerely|yours(?: sincerely| truly| faithfully)?|all the best|viele grüße|mit freundlichen grüßen|beste grüße|lg|mfg|cordialement|bien à vous|saludos|un saludo|atentamente|cordiali saluti|grazie|atenciosamente|groeten|met vriendelijke groet|hälsningar|mvh)[,.!]?[ ]?(?:\r?\n[ \t>]{{0,8}}){{1,3}}(?:--[ ]?\n)?)({_NAME})[ ]?(?=\r?\n|\Z)"
)
_TITLED = re.compile(
    rf"(?<!\w)(?:Mr|Mrs|Ms|Mx|Dr|Prof|Sir|Miss|Herrn?|Frau|Mme|Mlle|Monsieur|Madame|Señora?|Sr|Sra|Signora?|Dott|Ing|Rev|Hon|Capt|Sgt|Lt|Col)\.? (?:(?:Dr|Prof)\.? ){{0,2}}((?:{_PARTICLE}[ ]){{0,2}}{_NAME})"
)
_INTRODUCED = re.compile(
    rf"(?i:\b(?:my|her|his|their|your|full|the) (?:full |maiden |last |first |middle )?name(?: is|['’]s|:| was)|\bname['’]s|\bI am called|\bmein name ist|\bich heiße|\bje m['’]appelle|\bme llamo|\bmi chiamo|\bmeu nome é|\bsigned[- ]off[- ]by:|\bc/o|\battn:?|\bwritten by|\bauthored by|\breported by|\bassigned to|\bpayable to|\bpay to the order of)[ \t\n]{{1,3}}({_NAME})"
)
# What the others need, in lower case, to be looked for at all.
_GREETINGS = (
    "hi ", "hello ", "hey ", "dear ", "good ", "hallo ", "liebe", "guten ", "bonjour ", "cher", "chère ", "hola ", "estimad", "querid", "ciao ", "caro ", "cara ",
    "gentile ", "olá ", "prezad", "beste ", "hej ", "cześć ",
)  # fmt: skip
_INTRODUCTIONS = (
    "name is", "name's", "name’s", "name:", "name was", "mein name", " called", "heiße", "appelle", "llamo", "chiamo", "meu nome", "-off-by", "c/o", "attn", "written by", "authored by", "reported by", "assigned to",
    "payable to", "order of", "off by:",
)  # fmt: skip
_BOOKED = re.compile(r"(?<![\w/.-])[A-Z]{2,24}/[A-Z]{2,24}(?: [A-Z]{1,24})? ?(?:MR|MRS|MS|MSTR|MISS|DR)\b")
_BILLED = re.compile(
    rf"(?i:\b(?:bill(?:ed)?|ship(?:ped)?|sold|invoiced?|deliver(?:ed)?|wire \S{{1,12}} \S{{1,16}}|pay|transfer|refund(?:ed)?)) (?i:to):?[ \t\n]{{1,3}}({_FULL_NAME})(?![.\w]| \d)"
)
_NO_SPEAKER = frozenset(
    "Note Warning Error Info Debug Example Usage Returns Return Args Raises Parameters Todo Fixme Summary Description Question Answer Subject Status Total "
    "Traceback Exception Exit Default Options Option See Also New Next Step Last First Full Due Content Type Date Time Location Place Address Phone Bill Ship "
    "Payment Order Account Customer Client Invoice Project Contact Line Item Action Items Key Points Follow Open Known Issues Build Test Run Runtime "
    "Python Java Windows Linux Set Get Put Post Accept Cache Control User Agent Host Server Connection Transfer Encoding Message Chat Meeting Agenda Notes Attendees "
    "Read More Ref Reference Chapter Section Table Figure Appendix Important Tip Caution Attention Please Thanks Hello Team All Everyone Support Sales".split()
)
_CARD_LINE = re.compile(
    r"(?m)^(?:item\d{1,2}\.)?(N|FN|TEL|ADR|BDAY|ORGANIZER|ATTENDEE|NICKNAME)((?:;[^:\n]{0,300})?):([^\r\n]{1,500})"
)
_COMMON_NAME = re.compile(r"CN=\"?([^\";:]{1,80})")
_PARTS = re.compile(r"[^;,]{1,200}")
_DISTINGUISHED = re.compile(
    r"(?i)(?<![\w])cn=([^,;\"'<>=/\n]{3,60})(?=,\s{0,2}(?:ou|o|dc|c|l|st|email\w{0,10})=|/(?:O|OU|emailAddress)=)"
)


def people(text: str) -> Iterator[Finding]:
    """Yield names that the form of the text around them shows."""
    if "@" in text:
        for match in _beside_mails(text):
            if match[1].lower() not in _NO_NAMES:
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
        (_INTRODUCED, 0.7, _INTRODUCTIONS),
        (_BILLED, 0.7, (" to ", " to:", " to\t", " to\n")),
    ):
        for match in pattern.finditer(text) if holds(lower, needed) else ():
            if match[1].split()[0] not in _NO_SPEAKER:
                yield Finding(*match.span(1), PiiType.PERSON, score)
    for match in _BOOKED.finditer(text) if "/" in text else ():
        yield Finding(*match.span(), PiiType.PERSON, 0.85)
    for match in _DISTINGUISHED.finditer(text) if "cn=" in lower else ():
        if looks_like_full_name(match[1]):
            yield Finding(*match.span(1), PiiType.PERSON, 0.75)
    if "BEGIN:V" in text:
        yield from _contact_cards(text)


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
        name, start = line[1], line.start(3)
        if name in ("N", "ADR"):
            for part in _PARTS.finditer(line[3]):
                yield Finding(start + part.start(), start + part.end(), kinds[name], 0.85)
        elif name in kinds:
            skipped = len("tel:") if line[3].startswith("tel:") else 0
            yield Finding(start + skipped, line.end(3), kinds[name], 0.9)
        elif common := _COMMON_NAME.search(line[2]):
            yield Finding(line.start(2) + common.start(1), line.start(2) + common.end(1), PiiType.PERSON, 0.9)
