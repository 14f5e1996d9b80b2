"""People and places in sentences of Latin script, marked by a given name, a title or a verb beside them.

What is said of a small model's names holds here too: they are names of people only with a capital letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding, PiiType
from ..keys import in_words, is_role
from ..lists import PLAIN_WORDS
from ..names import FAMILY_NAMES, GIVEN_NAMES, PLACES_AND_WORDS, TURKISH_FAMILIES
from ..ner.words import comments
from ..scripts import CAPITALS

_NAME_WORD = rf"[{CAPITALS}][^\W\d_]{{1,24}}(?:[.'’-][^\W\d_]{{1,24}}){{0,3}}"
_PARTICLE = r"(?:van|von|der|den|de|da|la|le|del|della|di|dos|das|do|zu|zum|ter|ten|te|y|e|het|'t|op|in 't|bin|al|el|du|des|af|av)"
_NAME = rf"{_NAME_WORD}(?: [{CAPITALS}]\.)?(?: (?:{_PARTICLE} ){{0,3}}{_NAME_WORD}){{1,4}}"
# What a name may go on after, or what stands after a preposition: of others nothing is looked at.
_CAPITALISED = re.compile(
    rf"[{CAPITALS}](?<![\w.'’@/-].)(?:[^\W\d_A-Z][^\W\d_]{{0,23}}(?=[.'’-]| [{CAPITALS}]| (?:{_PARTICLE})[ '])|(?<=[a-zà,:] .)(?=[^\W\d_A-Z]))"
)
_FULL_NAME = re.compile(rf"{_NAME}(?![\w@])")
_CUE_BEFORE = re.compile(
    r"(?<!\w)(?:[Kk]und(?:e|in|en)|Familie|Patient(?:in)?|Mitarbeiter(?:in)?|Kolleg(?:e|in)|[Cc]lient(?:e|es|a|i)?|MM\.|[Ss]eñor(?:a|ita)?|[Ss]ignor(?:a|e|ina)?|[Mm]evrouw|[Mm]eneer|de heer|[Dd]hr\.|[Mm]evr\.|[Kk]lant|[Kk]lient(?:ka|ki|a|em|ką)?|"
    r"[Pp]an(?:a|u|em|ią)|[Ss]enhora?|[Pp]aciente|[Pp]aziente|[Mm]üşterimiz|Müşteri|[Ss]ayın|[Hh]asta|[Cc]ustomer|[Pp]atient|[Ee]mployee|record of|refunded|spoke (?:with|to)|talked to|made by|Ticket:|"
    r"[Pp]edido de|[Oo]rdine di|[Bb]estelling van|[Ll]ivraison pour|[Ll]ieferung (?:für|an)|[Bb]estellung (?:von|für)|[Zz]amówienie dla:?|[Ee]ncontramos|[Cc]onocimos a|[Ii]ncontrato|[Rr]encontré|[Tt]rafen|ontmoetten|podpisał[ay]?|"
    r"Dra\.|Dott\.|Dott\.ssa|Sig\.|Sig\.ra|Sra\.|Srta\.|Prof\.|nascimento de|nacimiento de|nascita di|naissance de|geboortedatum van|[Gg]eburtsdatum von|[Gg]estern hat|[Aa]yer|[Ii]eri|[Hh]ier|[Oo]ntem|[Dd]ün|[Gg]isteren belde|[Ww]czoraj|wrote|contact|ik heet|mijn naam is|nazywam się|mam na imię|je suis|soy|sono|me chamo|[Bb]enim adım|[Aa]dım|mi nombre es|il mio nome è|mon nom est|ging an|ging naar|adressée? à|envió a|enviad[oa] para|envoyée? à|intestat[ao] a|gestuurd naar|gesendet an|geschickt an|addressed to|sent to|wystawiono na:?|inviat[ao] a|gönderildi)(?: (?:Dra?|Sra?|Sig|Dott|Prof|pani?|Bay|Bayan)\.?)? \Z"
)
_CUE_AFTER = re.compile(
    r",? (?:Hanım|Bey|\((?:[Tt][eé]l|TEL|[Pp]hone|[Mm]obil)|(?:geboren|geb\.|né|née|nacid[oa]|nascid[oa]|nat[oa] il|urodzon[ya]|born|doğumlu)(?!\w)|(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2} [^\W\d_]{3,10} \d{4}) doğumlu|için|ile kira|adına)|(?: wurde (?:am|in)| est née?| nació| è nat[oa]| is geboren| urodził\w{0,2}| nasceu|(?: \S{1,20}){1,3} (?:tarihinde|doğdu))(?!\w)"
)
_STOPS = frozenset(
    "Street Road Avenue Lane Drive Way Place Square Court Bank Group GmbH Inc LLC Ltd Corp Company University School Hospital Airport Park Hall Center Centre Institute Foundation Museum Stadium Prize Award Day City County Island River Lake Team "
    "Studio Studios Systems Solutions Services Technologies Store Shop Hotel Restaurant Church Cathedral Straße Platz Weg Allee Calle Via Rua Rue Ulica University Test Server Client API Chair Table Lamp Edition Release Version Model "
    "Queue Runner Scheduler Handler Condition Service Worker Cluster Pool Cache Pipeline Controller Module Request Response Session Token Job Task Build Branch Deployment Dashboard Report Review Update Request".split()
)
_PLACE = re.compile(
    rf"[{CAPITALS}][^\W\d_]{{1,24}}(?:['’.-]{{1,2}}[^\W\d_]{{1,24}}){{0,4}}['’]?"
    rf"(?:(?: (?:de|da|do|dos|das|del|della|delle|di|d['’]|la|le|les|sur|sous|en|an der|am|im|in der|ob der|bei|aan den|aan de|a/d|op|du|lès|nad|upon|y)){{0,2}} ?[{CAPITALS}][^\W\d_]{{1,24}}(?:['’.-][^\W\d_]{{1,24}}){{0,3}}){{0,3}}(?![\w’'])"
)
_PREPOSITION = re.compile(
    r"(?<!\w)(?:nach|in|aus|à|aux?|en|ad?|naar|te|do|w|we|ze?|para|em|n[oa]|to|from|bei|miejscowości|mieście|miasta|miasto|(?:der|ville|ciudad|cidade|città|stad) (?:Stadt|de|di))(?: (?:d[aoe]s?|L[aeo]s?|El|Den|De|Het|'s-?))?[ -]\Z"
)
_LIVES = re.compile(
    r"(?<!\w)(?:[Ww]ohn(?:t|en|haft|e)|komm(?:e|t) aus|[Ll]eb(?:t|en)|(?:um|ver)?gezogen|zog|stammt|trafen|getroffen|ansässig|geboren|habite\w{0,2}|vi[st]|vivent|née?s?|déménagé\w{0,2}|demeurant|installé\w{0,2}|rencontré\w{0,2}|résid\w{1,4}|viv[eíao]\w{0,3}|resid\w{1,4}|mud(?:ó|ou|aron)|"
    r"conocimos|nac(?:ió|ido|ida|í)|abita\w{0,2}|trasferit[aoie]|risied\w{1,3}|incontrat[oaie]|nat[oa]|woon(?:t|achtig)?|verhuisd\w?|ontmoetten|gevestigd|mieszka\w{0,3}|przeprowadził\w{0,2}|urodził\w{0,2}|zamieszkał\w{0,2}|podpisał\w?|mor(?:o|a|am|ou|ava)|encontramos|Encontramos|nasc(?:eu|ido|ida|i)|"
    r"vimos|vist[oaei]|vue?s?|habitons|zagen|zag|sahen|saw|moved|lives?|living|lived|met|resid(?:es|ing|ent)|based|picked up|office is|born|reports)(?!\w)"
)
_TURKISH_AFTER = re.compile(
    r" (?:şehri\w{0,4}|ilin[ed]\w{0,3}|ilçesi\w{1,4}|kenti\w{1,4})(?!\w)|['’](?:[dt][ae]n?|y?[ae])(?= (?:yaşı|otur|taşın|doğ|çalış))"
)
_NO_PLACE = frozenset(
    "I We You He She It They The A An This That Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October November December Ordnung Höhe Frage Anspruch Zukunft Hause Kürze Rechnung Absprache "
    "Zusammenarbeit Verbindung Bezug Euro Uhr Januar Februar März Mai Juni Juli Oktober Dezember English German French Python Java IP URL API ID HTTP JSON CSV SQL PDF Frau Herrn Herr Konto Karte Telefon Kunden Kunde Deutschland Ihnen Ihrer Sie Dr Mr Mrs Ms".split()
)
_REACH, _LONGEST_CUE = 80, 30
_TURKISH = frozenset(TURKISH_FAMILIES)
_TURKISH_STARTS = re.compile(
    r"(?:(?:Dün|Bugün|Yarın|Toplantıya|Toplantıda|Sözleşmeyi|Yeni|Sayın|Müşteri|Hasta|Lütfen|Ve|İle|Bu|Şu|Her|Bizim) )?"
)
_FAMILIES = FAMILY_NAMES - PLACES_AND_WORDS


def latin_prose(text: str) -> Iterator[Finding]:
    """Yield people and places."""
    if " " not in text:
        return
    found = [finding for word in _CAPITALISED.finditer(text) for finding in _around(text, word.start())]
    published = comments(text) if found else []
    for each in found:
        if not any(start <= each.start < end for start, end in published):
            yield each


def _around(text: str, start: int) -> Iterator[Finding]:
    if name := _FULL_NAME.match(text, start):
        yield from _name(text, name)
    if start > _SHORTEST_PREPOSITION and text[start - 1] == " ":
        yield from _place(text, start)


_SHORTEST_PREPOSITION = 2


def _name(text: str, name: re.Match[str]) -> Iterator[Finding]:
    said, start, score = name[0], name.start(), 0.0
    if (another := _AND.search(said)) and another[1] in GIVEN_NAMES:
        said = said[: another.start()]  # which is found by itself
    words, end = said.split(), start + len(said)
    if _STOPS & set(words):
        return
    if words[0].partition("-")[0] in GIVEN_NAMES:
        score = 0.62
    elif words[0] in PLACES_AND_WORDS and words[-1] in _FAMILIES:
        score = 0.6
    elif _CUE_BEFORE.search(text, max(0, start - _LONGEST_CUE), start) or _CUE_AFTER.match(text, end):
        score = 0.55
    elif (role := _WORD_BEFORE.search(text, max(0, start - _LONGEST_CUE), start)) and (
        is_role(in_words(role[1])) and words[0].lower() not in PLAIN_WORDS
    ):
        score = 0.5
    elif words[-1] in _TURKISH and (skipped := _TURKISH_STARTS.match(said)):
        start, score = start + skipped.end(), 0.5 if len(words) - bool(skipped[0]) > 1 else 0.0
    if score:
        yield Finding(start, end, PiiType.PERSON, score)


_WORD_BEFORE = re.compile(
    r"(?:(?<!\w)(?:d(?:er|ie|en|em?)|unsere?[rmn]?|l(?:[aeo]s?|['’])|el|il|[oa]|un[ao]?|une|notre|nuestr[oa]|nostr[oa]|het|onze|the|our) |l['’]|(?:^|[.;:] )(?-i:(?=[^\W\d_a-z])))([^\W\d_]{4,24}) \Z",
    re.IGNORECASE | re.MULTILINE,
)
_AND = re.compile(r" [ye] ([^\W\d_]{3,24})(?= )")


def _place(text: str, start: int) -> Iterator[Finding]:
    place = _PLACE.match(text, start)
    if place is None or place[0].split()[0] in _NO_PLACE:
        return
    if _TURKISH_AFTER.match(text, place.end()):
        yield Finding(start, place.end(), PiiType.LOCATION, 0.55)
        return
    preposition = _PREPOSITION.search(text, max(0, start - _LONGEST_CUE), start)
    if preposition is None or place[0].partition("-")[0] in GIVEN_NAMES:
        return
    first = max(text.rfind("\n", 0, start) + 1, text.rfind(". ", max(0, start - _REACH), start) + 1, start - _REACH)
    if _LIVES.search(text, first, preposition.start()) or _LIVES.match(text, place.end() + 1):
        yield Finding(start, place.end(), PiiType.LOCATION, 0.5)
