"""Numbers of papers and accounts, and dates of birth, known by the words around them: `passport no. X1234567`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..findings import Finding, PiiType
from ..scripts import has_digit, holds, lowered, readable

_MONTH = (
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mär|Mai|Juni?|Juli?|Okt|Dez|janv|févr|mars|avr|juin|juil|août|ene|abr|ago|dic|gen|mag|giu|lug|set|ott)"
    r"[^\W\d_]{0,8}"
)
_CODE = r"(?=[A-Z0-9-]{0,16}\d{3})[A-Z0-9][A-Z0-9-]{4,17}"


_ANCHOR = re.compile(r"(?:\(\?-i:)?([^\W\d_]+(?!\?)|[^\W\d_]+(?=[^\W\d_]\?))")


def _top_level(alternatives: str) -> list[str]:
    """Return the alternatives of an expression that stand in no group."""
    parts, depth = [""], 0
    for character in alternatives:
        depth += (character in "([") - (character in ")]")
        if character == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


@dataclass(frozen=True, slots=True)
class _Kind:
    type: PiiType
    anchors: tuple[str, ...]
    words: re.Pattern[str]
    value: re.Pattern[str]


def _kind(kind: PiiType, words: str, value: str) -> _Kind:
    words = readable(words)
    # What the words begin with, in lower case.
    anchors = tuple({_ANCHOR.match(word)[1].lower() for word in _top_level(words)})  # type: ignore[index]  # all begin so
    return _Kind(kind, anchors, re.compile(rf"(?i)(?<!\w)(?:{words})"), re.compile(rf"({value})(?![A-Za-z0-9])"))


_KINDS = (
    _kind(
        PiiType.PASSPORT,
        r"passport|reisepass\w{0,8}|pasaporte|passeport|passaport[eo]|paspoort\w{0,8}|paszport\w{0,2}|паспорт\w{0,2}|护照|護照|パスポート|旅券|여권|جواز السفر|पासपोर्ट|pasaport\w{0,4}|cestovní pas",
        r"\d{2} ?\d{2} \d{6}|[A-Z]{0,3}\d{6,9}[A-Z]?|\d{2}[A-Z]{2}\d{5}|(?=[A-Z0-9]{0,7}\d{2})[A-Z][A-Z0-9]{7,8}",
    ),
    _kind(
        PiiType.DRIVING_LICENCE,
        r"driver['’]?s?['’]? licen[sc]e|driving licen[sc]e|licen[sc]e|DL\b|führerschein\w{0,8}|permis de conduire|patente\b|rijbewijs\w{0,8}|prawo jazdy|"
        r"(?-i:CNH)\b|körkort\w{0,8}",
        _CODE,
    ),
    _kind(
        PiiType.MEDICAL,
        r"MRN\b|medical record|patient (?:id|number|no)|member (?:id|no|number)|insurance (?:id|number|no|policy|code)|"
        r"policy (?:no|number|#)|health (?:id|card|insurance)|medicare|medicaid|NHS\b|(?-i:NPI)\b|DEA (?:no|number)|"
        r"krankenversicher\w{0,12}|versichertennummer",
        r"\d{3} \d{3} \d{4}|\d{4} \d{5} \d|#?(?=[A-Z0-9 -]{0,16}\d{3})[A-Z0-9][A-Z0-9-]{4,17}(?: \d{3} \d{4})?",
    ),
    _kind(
        PiiType.TAX_ID,
        r"TIN\b|EIN\b|ITIN\b|PAN\b|tax(?:payer)? (?:id|no|number|identification|file)|VAT\b|GSTIN\b|steuer\w{0,20}|codice fiscale|NIF\b|CPF\b|CNPJ\b|UTR\b|"
        r"adószám\w{0,5}|adóazonosító\w{0,4}|(?-i:ΑΦΜ)\b|(?-i:ЄДРПОУ)\b|(?-i:ІПН)\b|(?-i:DIČ)\b|(?-i:TFN)\b|(?-i:ABN)\b|(?-i:NIP)\b|(?-i:CUI[TL])\b|(?-i:RUT)\b|SIREN\b|SIRET\b|partita iva|num[eé]ro fiscal",
        r"\d{2,3}(?: \d{3}){2,3}|(?=[A-Z0-9./-]{0,18}\d{3})[A-Z0-9][A-Z0-9./-]{6,19}",
    ),
    _kind(PiiType.TAX_ID, r"(?-i:RFC)\b", r"[A-ZÑ&]{3,4}\d{6}[A-Z0-9]{3}"),
    _kind(
        PiiType.SSN,
        r"(?-i:NSS)\b|(?-i:NUSS)\b|carte vitale|(?-i:NIR)\b|(?-i:TAJ)\b|(?-i:SV-N(?:umme)?r)|sécu\b|sozialversicherung\w{0,10}|rentenversicherung\w{0,10}|s[ée]curit[ée] sociale|seguridad social|n[úu]mero de la seguridad",
        r"\d{2} ?\d{6} ?[A-Z] ?\d{3}|\d{2}[/ ]?\d{8}[/ ]?\d{2}|\d{12}|\d{4} ?\d{6}|\d{3} \d{3} \d{3}|\d{9}|\d{11}|[12](?: ?\d{2}){3} ?\d{3} ?\d{3}(?: ?\d{2})?",
    ),
    _kind(
        PiiType.SSN,
        r"SSN\b|social security|SIN\b|socials?\b",
        r"(?:\d{3}|[Xx*]{3})[- ]?(?:\d{2}|[Xx*]{2})[- ]?\d{4}|\d{3}[- ]\d{3}[- ]\d{3}",
    ),
    _kind(PiiType.BANK, r"sort code|BSB\b", r"\d{2}[- ]\d{2}[- ]\d{2}|\d{3}[- ]\d{3}|\d{6}"),
    _kind(
        PiiType.BANK,
        r"routing|ABA\b|accounts?|acct?\b|sort code|A/C\b|BSB\b|konto\w{0,10}|cuenta|IFSC\b|CLABE\b|계좌(?:번호)?|口座番号|账号|帳號|rachunk\w{0,2}|bankleitzahl|BLZ\b|rekeningn\w{0,8}",
        r"(?=\d(?:[ -]{0,3}\d){6})\d[\d -]{4,22}\d[A-Z]?|[A-Z]{2,6}\d{6,16}|[A-Z]{4}0[A-Z0-9]{6}",
    ),
    _kind(
        PiiType.NATIONAL_ID,
        r"aadha?ar|national id(?:entity|entification)?|voter id|NINO?\b|national insurance|identity (?:card|number)|ID (?:card|number)|"
        r"badge|employee|citizen(?:ship)? (?:id|number)|personalausweis\w{0,8}|DNI\b|BSN\b|PESEL\b|personnummer|student id|CURP\b|"
        r"NI (?:number|no)|(?-i:RG)\b|(?-i:NIE)\b|cart[ae] d['’]identit[éàa]|dow[óo]d osobisty|HETU\b|(?-i:CPR)\b|NRIC\b|emirates id|c[ée]dula",
        r"[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]|\d{1,2}\.\d{3}\.\d{3}-[\dX]|(?=[A-Z0-9 -]{0,18}\d{3})[A-Z0-9](?:[A-Z0-9-]| (?=[A-Z0-9]*\d)){3,19}[A-Z0-9]",
    ),
    _kind(
        PiiType.NATIONAL_ID,
        r"居民身份证|身份证|公民身份号码|公民身份號碼|身份号码|身分證字號|身分證|身份證字號|身份證|統一編號|주민등록번호|주민번호|외국인등록번호|マイナンバー|個人番号|(?-i:CNP)\b|(?-i:AHV)\b|(?-i:AVS)\b|運転免許証(?:番号)?|運転免許(?:番号)?|運転免許証番号|健康保険証|在留カード|운전면허(?:번호)?|驾驶证号?|henkilötunnus|samordningsn\w{0,8}|personbeteckning|sosiaaliturvatunnus|(?-i:HETU)\b|versicherten|kvnr\b|rodné číslo|rodne cislo|(?-i:RČ)\b|fødselsn(?:umme)?r|kennitala|(?-i:EGN)\b|(?-i:ЕГН)\b"
        r"|(?-i:JMBG)\b|(?-i:OIB)\b|(?-i:EMŠO)\b|isikukood|asmens kodas|personas kods|(?-i:ИНН)\b|(?-i:СНИЛС)\b|(?-i:РНОКПП)\b|(?-i:AMKA)\b|(?-i:ΑΜΚΑ)\b|(?-i:PPSN?)\b|rijksregisternummer|(?-i:NISS)\b|(?-i:TCKN)\b|kimlik no|(?-i:NIK)\b|(?-i:KTP)\b|(?-i:CCCD)\b|(?-i:CMND)\b|(?-i:МРН)\b|ת\.ז\.|आधार|الرقم القومي|الرقم الوطني|رقم الهوية|תעודת זהות|เลขประจำตัวประชาชน",
        r"\d{6}[-+A-FU-Y]\d{3}[0-9A-Y]|[A-Z]\d{9}|(?:\d[ ./-]?){7,17}[\dXA-Z][A-Z]?",
    ),
    _kind(PiiType.NATIONAL_ID, r"pnr\b|persnr\b|personnr\b", r"\d{6}(?:\d\d)?[-+ ]?\d{4,5}"),
    _kind(
        PiiType.DATE_OF_BIRTH,
        r"DOB\b|D\.O\.B\.?|date of birth|born|birth ?date|birthday|BDAY\b|geboren|geburtsdatum|geb\.|né(?:e)? le|date de naissance|nacimiento|nacid[oa]|nato il|nata il|nascita|"
        r"nasc(?:id[oa]|imento)|urodz(?:on[ya]|enia)|(?-i:ur\.)|(?-i:nar\.)|narozen[aý]?|född|födelsed\w{0,5}|født|fødselsd\w{0,4}|fødd|syntynyt|synt\.|született|szül\.|născut[ăa]?|rođen[a]?|roj\.|doğum tarihi\w{0,2}|geboortedatum|gebdat|geb\. ?dat\.?",
        rf"\d{{1,4}}[-/.] ?\d{{1,2}}[-/.] ?\d{{1,4}}|\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of| de)? {_MONTH},? (?:de )?\d{{4}}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
        r"|\d{4} ?[年년] ?\d{1,2} ?[月월] ?\d{1,2} ?[日일]|\d{1,2}\.?(?: de)? [^\W\d_]{3,16}\.?,?(?: de)? \d{4}",
    ),
    _kind(
        PiiType.ZIP,
        r"zip(?: code)?|post(?:al)? ?code|PLZ\b|postleitzahl|code postal|c[óo]digo postal|(?-i:CEP)\b",
        r"\d{4,5}(?:-\d{3,4})?|[A-Z]{1,2}\d[A-Z0-9]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d",
    ),
)
_BRIDGE = re.compile(
    rf"(?:[\s:：#=.()'\"’*-]{{0,4}}(?i:is|was|am|el|em|il|op|den|dnia|dne|für|için|van|von|de|number|no|num|nr|id|号码?|號碼?|番号|번호|of|to|as|for|with|like|on|code|card|the|ist|es|est|my|ending|n|nr|num|{readable('संख्या|नंबर|क्रमांक')}|n[º°]|numero|número|numéro|nummer|in|details|info|identification|and)(?=[\s:：#=.()'\"’*-])){{0,5}}"
    r"[\s:：#=.()'\"’*-]{1,6}"
)


_BRIDGE_BACK = re.compile(
    r"[ ](?:is|was)[ ](?:(?:my|the|your|our|his|her|their|a|an|valid|new|old|current)[ ]){1,2}\Z", re.IGNORECASE
)
_STARTS = re.compile(r"(?<![^\s\"'(:])[A-Z0-9]")
_LONGEST_BRIDGE, _LONGEST_VALUE = 32, 32
_BY_ANCHOR: dict[str, list[_Kind]] = {}
for _each in _KINDS:
    for _anchor in _each.anchors:
        _BY_ANCHOR.setdefault(_anchor, []).append(_each)


def identifiers(text: str) -> Iterator[Finding]:
    """Yield the numbers after words that say what they are."""
    if not has_digit(text):
        return
    # Finding how the words begin as plain texts costs the least.
    lower = lowered(text)
    for anchor, kinds in _BY_ANCHOR.items():
        at = lower.find(anchor)
        while at >= 0:
            for kind in kinds:
                if words := kind.words.match(text, at):
                    yield from _number(kind, text, words.end())
                    yield from _number_before(kind, text, at)
            at = lower.find(anchor, at + 1)


def _number_before(kind: _Kind, text: str, end: int) -> Iterator[Finding]:
    """Yield the number of a sentence that begins with it: `X1234567 is my passport number`."""
    bridge = _BRIDGE_BACK.search(text, max(0, end - _LONGEST_BRIDGE), end)
    if bridge is None:
        return
    for word in _STARTS.finditer(text, max(0, bridge.start() - _LONGEST_VALUE), bridge.start()):
        value = kind.value.match(text, word.start())
        if value and value.end(1) == bridge.start():
            yield Finding(word.start(), value.end(1), kind.type, 0.75)
            return


def _number(kind: _Kind, text: str, at: int) -> Iterator[Finding]:
    bridge = _BRIDGE.match(text, at)
    value = bridge and kind.value.match(text, bridge.end())
    if bridge and value and not (kind.type is PiiType.BANK and _is_clouds(text, bridge, value)):
        found = value[1].rstrip(" -.")
        yield Finding(value.start(1), value.start(1) + len(found), kind.type, 0.8)


def _is_clouds(text: str, bridge: re.Match[str], value: re.Match[str]) -> bool:
    return _CLOUD.fullmatch(value[1]) is not None and (
        "id" in bridge[0].lower()
        or _CLOUDS.search(text, max(0, bridge.start() - _NEAR), bridge.start()) is not None
        or _CLOUDS_AFTER.match(text, value.end()) is not None
    )


_CLOUD = re.compile(r"\d{12}")
"""The id of an account of a cloud."""
_CLOUDS, _NEAR = re.compile(r"(?:\b(?:AWS|aws|IAM|iam)\b|arn:aws:)[^\n]{0,12}\baccounts?\Z"), 24
_CLOUDS_AFTER = re.compile(r" (?:in|\() ?(?:us|eu|ap|sa|ca|me|af)-[a-z]{4,9}-\d\b| sts:| iam:|:role/|:user/")
_MONTHS = r"[^\W\d_]{2,16}\.?"
_DATE = re.compile(
    rf"(?<![A-Za-z0-9./-])(?:\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|\d{{1,2}}\.?(?:st|nd|rd|th)?(?: of| de)? {_MONTHS},?(?: de| del)? \d{{4}}|{_MONTHS} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    r"|\d{4} ?[年년][ ]?\d{1,2} ?[月월][ ]?\d{1,2} ?[日일]?)(?![\d/-])"
)
# Each with the beginning that a text is searched for first, in lower case.
_STEMS = tuple(
    readable(stem)
    for stem in (
        "born", "birth", "gebor", "geburt", "geboorte", "geb.", " né", "naci", "nací", "nasc", "nato a", "nata a", "nato i", "nata i", "è nat", "nacque", "urodz", "doğ", "родил", "народ", "рожд", "生", "태어", "생일", "생년", "ولد", "ميلاد", "مواليد", "जन्म",
    )
)  # fmt: skip
_ASCII_STEMS = tuple(stem for stem in _STEMS if stem.isascii())
_BORN = re.compile(
    r"(?i)(?<!\w)(?:born|birth(?:day|date)?|geboren|geb\.|geburtsdatum|geburtstag|geboortedatum|geboortedag|née?s?|nació|nací|nacid[oa]s?|nacimiento|nasceu|nasci|nascid[oa]|nascimento|(?-i:[Nn]at[oa])|nascita|nacque|urodzi\w{1,4}|urodzon[yai]|urodzenia|doğ(?:du|muş|umlu|um)\w{0,4}|родил\w{1,3}|рождени\w|народи\w{1,4}|народження)(?!\w)"
    rf"|生まれ|生年月日|誕生|出生|生于|태어|생일|생년월일|(?:{readable('ولد|ولدت|ميلاد|الميلاد|مواليد|مولود|जन्म|जन्मदिन')})"
)
_STARRED = re.compile(r"(?:(?<=[\w,;(] )|(?<=[,;(]))\*[ ]?(\d{1,2}\.\d{1,2}\.(?:19|20)\d\d)(?!\d)")
"""`Roe, Jane, *3.5.1961`; at the start of a line a star begins the item of a list."""
_SENTENCE_ENDS = re.compile(r"[.!?。！？।]\s|[\n;|{}]|(?<=[日일])[。]")
_REACH = 60
_EVENTS = re.compile(r"\d\d:\d\d")


def births(text: str) -> Iterator[Finding]:
    """Yield the dates."""
    if not has_digit(text):
        return
    for starred in _STARRED.finditer(text) if "*" in text else ():
        yield Finding(*starred.span(1), PiiType.DATE_OF_BIRTH, 0.7)
    if not holds(lowered(text), _ASCII_STEMS if text.isascii() else _STEMS):
        return
    for born in _BORN.finditer(text):
        first, last = max(0, born.start() - _REACH), min(len(text), born.end() + _REACH)
        for end in _SENTENCE_ENDS.finditer(text, first, born.start()):
            if not _ends_in_date(text, end):
                first = end.end()
        for end in _SENTENCE_ENDS.finditer(text, born.end(), last):
            if not _ends_in_date(text, end):
                last = end.start() + 1
                break
        after = _DATE.search(text, born.end(), last)
        before = None if after else _DATE.search(text, first, born.start())
        for date in (after, before):
            if date and not _EVENTS.match(text, date.end() + 1):
                yield Finding(*date.span(), PiiType.DATE_OF_BIRTH, 0.7)


def _ends_in_date(text: str, end: re.Match[str]) -> bool:
    """Return whether a point belongs to a date or to a short word: `am 3. Mai`, `d. 3.`."""
    return text[end.start()] == "." and (
        text[end.start() - 1 : end.start()].isdigit() and text[end.end() : end.end() + 1].isalpha()
    )
