"""Postal addresses by their form: a street and a number, with what follows of flat, place and code.

Words for streets: USPS Publication 28, appendix C1, and the usual ones of other languages. Addresses without such a
word are left to the fields and to the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..findings import Finding, PiiType
from ..scripts import has_digit, holds, lowered

_ENGLISH = (
    "Alley Ally Aly Avenue Ave Av Bayou Beach Bend Bluff Bluffs Bottom Boulevard Blvd Branch Bridge Brook Brooks Burg Burgs Bypass Camp Canyon Cape "
    "Causeway Center Centers Centre Circle Circles Cir Cliff Cliffs Close Club Common Commons Concourse Corner Corners Course Court Courts Ct Cove Coves Creek "
    "Crescent Cres Crest Crossing Crossroad Crossroads Curve Dale Dam Divide Drive Drives Dr Estate Estates Expressway Extension Extensions "
    "Fall Falls Ferry Field Fields Flat Flats Ford Fords Forest Forge Forges Fork Forks Fort Freeway Garden Gardens Gateway Glen Glens Green "
    "Greens Grove Groves Harbor Harbors Haven Heights Highway Hwy Hill Hills Hollow Inlet Island Islands Isle Junction Junctions Key Keys Knoll "
    "Knolls Lake Lakes Land Landing Lane Ln Light Lights Loaf Lock Locks Lodge Loop Mall Manor Manors Meadow Meadows Mews Mill Mills Mission "
    "Motorway Mount Mountain Mountains Neck Oval Overpass Orchard Parade Park Parks Parkway Parkways Pkwy Pass Passage Path Pike Pine Pines Place Pl Plain "
    "Plains Plaza Point Points Port Ports Prairie Radial Ramp Ranch Rapid Rapids Rest Ridge Ridges Rise River Road Roads Rd Route Row Rue Run Shoal "
    "Shoals Shore Shores Skyway Spring Springs Spur Spurs Square Squares Sq Station Stravenue Stream Street Streets St Summit Terrace Ter Throughway "
    "Trace Track Trafficway Trail Trl Tunnel Turnpike Underpass Union Unions Valley Valleys Via Viaduct View Views Village Villages Ville Vista Walk Walks "
    "Wall Way Ways Well Wells Marg Nagar Chowk Ganj Salai"
).split()
_SURE_ENGLISH = frozenset(
    "Avenue Ave Boulevard Blvd Circle Court Ct Crescent Drive Dr Highway Hwy Lane Ln Parkway Pkwy Place Road Rd Square Street St Terrace Way".split()
)
_WORD = r"[^\W\d_][\w'’.-]{0,24}"
_CAPITAL = r"(?:[A-ZÀ-ÖØ-ÞĀŁŚŠŽČĐŻŹĆŃŘŤĎĽĞİŞȚȘŐŰ][\w'’.-]{0,24}|[a-z]{1,3}['’][A-ZÀ-Þ][\w'’-]{1,24}|d[aeiou]s?|de[lrn]?|l[aeo]s?|von|van|der|den|zu[rm]?|am|im|of|the|und|y|e|i|\d{1,2}(?:st|nd|rd|th))"
_UNIT = r"(?:[ ,\n]{1,3}(?:Apt|Apartment|Suite|Ste|Unit|Floor|Flat|Room|Rm|Bldg|Building|No|Nr|Stiege|Top|Piso|Apto|Etage|Puerta|Escalera|Appartamento|Interno|Piano|#)\.?[ ]?[\w-]{1,8})?"
_NUMBER_FIRST = re.compile(
    rf"(?<![\w.,:/#$€£%-])\d{{1,6}}[A-Za-z]?(?:[-/]\d{{1,5}})?,? (?:[NSEW]{{1,2}}\.? )?(?:[^\W\d_a-z][\w'’.-]{{0,24}}[ -]){{1,4}}({'|'.join(sorted((*_ENGLISH, *map(str.upper, _SURE_ENGLISH)), key=len, reverse=True))})\b\.?(?: [NSEW]{{1,2}}\b)?{_UNIT}"
)
_BEFORE_NUMBER = re.compile(
    r"(?<![\w.])(?:H\. ?No\.?|House No\.?|Flat(?: No\.?)?|Plot(?: No\.?)?|Door No\.?|Unit|Apt\.?|Suite) ?\Z"
)
_LONGEST_BEFORE_NUMBER = 12
_WORD_FIRST = re.compile(
    rf"(?<![\w])(?:Rue|Avenue|Av\.|Boulevard|Bd|Place|Chemin|Allée|Impasse|Quai|Calle|C/|Avenida|Avda\.?|Plaza|Paseo|Carrer|Camino|Camiño|Ronda|Rúa|Via|Viale|Piazza|Corso|Vicolo|Largo|Rua|Travessa|Praça|Praia|Estrada|Rodovia|Condomínio|Vale|Campo|Colônia|Viaduto|Esplanada|Parque|Jardim|Residencial|Quadra|Vila|Viela|Ladeira|Loteamento|Morro|Passarela|Pátio|Recanto|Setor|Sítio|Trecho|Trevo|Distrito|Fazenda|Lago|Lagoa|Núcleo|Conjunto|Favela|Feira|Estação|Chácara|Aeroporto|Área|Ulica|ulica|ul\.|al\.|[Aa]leja|[Pp]lac|[Ss]kwer|[Rr]ondo|[Oo]siedle|Trg|Strada|Stretto|Rotonda|Incrocio|Canale|Salita|Lungomare|Str\.|Bulevardul|Calea|Contrada|Borgo|Calzada|Cañada|Prolongación|Pasaje|Pasadizo|Urbanización|Vial|Callejón|Andador|Privada|Circuito|Cerrada|Eje|Retorno|Viaducto|Periférico|Rambla|Cuesta|Alameda|Glorieta|Acceso|Bulevar|Corredor|Diagonal|Peatonal|Vereda|Ampliación|Continuación|pl\.|os\.|Náměstí|Phố|Đường|Jalan|Jl\.|Gran Vía|Strasse|Straße|Am|An der|Auf der|Zum|Zur|Im)"
    rf" (?:{_CAPITAL} ){{0,5}}{_CAPITAL}(?:,?(?: n[º°o]\.?)? \d{{1,5}}(?:[-/ ]?[A-Za-z0-9]{{1,3}}\b)?(?!\w){_UNIT}|(?=, [^,\n]{{2,40}}, ?\d{{5}}-?\d{{3}} ))"
)
_NUMBER_THEN_WORD = re.compile(
    rf"(?<![\w.,:/-])\d{{1,5}}(?: ?(?:bis|ter|[A-Z]))?,? (?i:rue|avenue|av\.|boulevard|bd|place|chemin|allée|impasse|quai|route|cours|square|passage) (?:{_CAPITAL}[ -]){{0,5}}{_CAPITAL}{_UNIT}"
)
# Street words that end a word, of German, Dutch, Scandinavian, Finnish, Hungarian, Turkish and Czech; what is before them is looked at after.
_ENDS_OF_STREETS = (
    "straße strasse str. gasse weg platz allee damm ufer chaussee steig graben markt stieg pfad straat laan plein gracht kade dreef singel steenweg baan gatan "
    "vägen gränd backen stigen gata gaten veien vegen vej vejen gade allé stræde katu polku kuja utca caddesi sokak sokağı Caddesi Cad. Sokak Sokağı Sok. Bulvarı ulice náměstí"
).split()
# Ends of streets that also end other words: only where an address is expected, or a code follows.
_DOUBTFUL_ENDS = re.compile(
    r"(?:ring|hof|boulevard|kamp|dijk|park|pad|baan|ried|berg|hang|zeile|blick) \d{1,4}(?:/\d{1,3})?(?: ?[a-z]\b)?(?=,? (?:[A-Z]-)?\d{4,5} ?[A-Z]|[.,;\"]?\s?\Z|\.\s|[,\n])"
)
_EXPECTED = re.compile(
    r"(?i)(?:\b(?:an|an die|an den|naar|moet naar|op|adres|adresse|anschrift|wohnt|woont|in de|aan de|in der|address|to|at|unter|zur|zum|bestellt|paket):? ?(?:die |den |de |het )?|\A|[\n\"=])\Z"
)
_HYPHENED = "Straße|Strasse|Str\\.|Gasse|Weg|Platz|Allee|Ring|Damm|Ufer|Hof|Steig|Pfad"
_COMPOUND_ENDS = tuple(f"{end} " for end in (*_ENDS_OF_STREETS, *_HYPHENED.replace("\\", "").split("|")))
_COMPOUND = re.compile(
    rf"(?:{'|'.join(map(re.escape, _ENDS_OF_STREETS))}|-(?:{_HYPHENED})) (?:No: ?)?\d{{1,4}}(?: ?[a-zA-Z]\b|[-/]\d{{1,4}}[a-z]?)?(?!\w){_UNIT}"
)
_COMPOUND_BEFORE = re.compile(
    r"(?<!\w)(?=[A-ZÀ-ÞŠŽČĐ])(?:(?:[A-ZÀ-ÞŠŽČĐ][\w'’.]{0,24}|v[ao]n|de[nr]?|ter)[ -]){0,3}[A-ZÀ-ÞŠŽČĐ][\w'’.-]{0,40}[ -]?\Z"
)
_LONGEST_BEFORE = 120
_BOX = re.compile(
    r"(?i)(?<!\w)(?:p\.? ?o\.? box|postfach|apartado(?: de correos)?|bo[iî]te postale|casella postale|postbus|caixa postal) ?#?\d[\d ]{0,8}\d?(?!\w)"
)
_BOX_WORDS = ("box", "postfach", "apartado", "postale", "postbus", "caixa")
_MILITARY = re.compile(
    r"(?i)(?<!\w)(?:(?:unit|psc|cmr)[ ]\d{1,5},?[ ]box[ ]\d{1,5}|(?:uss|uscgc|usns|usnv|usnm)[ ][\w-]{2,30})[\s,]{1,4}(?:apo|fpo|dpo),?[ ](?:aa|ae|ap)[ ]\d{5}(?:-\d{4})?"
)
_STATES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT "
    "VA WA WV WI WY DC PR VI GU AS MP FM MH PW NSW VIC QLD WA SA TAS ACT NT ON QC BC AB MB SK NS NB NL PE"
).split()
_PLACE_AND_CODE = re.compile(
    rf"(?<![\w-])(?:[^\W\d_a-z][\w'’.-]{{1,24}} ){{0,2}}[^\W\d_a-z][\w'’.-]{{1,24}},? (?:{'|'.join(_STATES)}),? (?:\d{{4,5}}(?:-\d{{4}})?|[A-Z]\d[A-Z] ?\d[A-Z]\d)(?![\w-])"
)
_POSTCODE = re.compile(
    r"(?<![\w-])(?:[A-PR-UWYZ][A-HK-Y]?\d[A-HJKPSTUW\d]? \d[ABD-HJLNP-UW-Z]{2}|[ABCEGHJ-NPRSTVXY]\d[ABCEGHJ-NPRSTV-Z] \d[ABCEGHJ-NPRSTV-Z]\d)(?![\w-])"
)
_CODE_AND_PLACE = re.compile(
    r"(?:[A-Z]{1,2}-)?(\d{5}-\d{3}|\d{4,6}|\d{3} \d{2}|\d{2}-\d{3}|\d{4} ?[A-Z]{2}),?[ ]([A-ZÀ-ÞŠŽČĐŁŚŻŹĆŃŘŤĎĽĞİŞȚȘŐŰ][\w'’.-]{1,30}(?:[ -][A-ZÀ-Þ(][\w'’.)-]{1,30}){0,3})"
)
_PLACE = re.compile(
    r"[A-ZÀ-ÞŠŽČĐŁŚŻŹĆŃŘŤĎĽĞİŞȚȘŐŰ][\w'’.-]{1,30}(?:[ -][A-ZÀ-Þ][\w'’.-]{1,30}){0,2}(?=[,\n]|[ ]\d{4,6}\b|\Z)"
)
# …, Bairro, 01234-567 Cidade / UF
_BRAZILIAN_REST = re.compile(r"(?:, ?[^,\n]{2,40})?, ?\d{5}-?\d{3},? [^,/\n]{2,40} ?[/-] ?[A-Z]{2}(?!\w)")
_JOIN = re.compile(r"[ \t]{0,2},?[ \t]{0,2}\n?[ \t]{0,8}")
_CODE = re.compile(
    r"(?:[A-Z]{2} )?(?:\d{4} [A-Z]{2}|\d{3} \d{2}|\d{2}-\d{3}|\d{4,6}(?:-\d{3,4})?|[A-Z]{1,2}\d[A-Z\d]{0,2} \d[A-Z]{2})(?![\w-])"
)


# 58-100 Świdnica, alone on its line: the code of Poland
_POLISH_LINE = re.compile(
    r"(?m)^[ \t]{0,40}(\d{2}-\d{3}) ([^\W\d_a-z][^\W\d_]{2,24}(?:[ -][^\W\d_]{2,24}){0,2})[ \t]{0,8}$"
)


def addresses(text: str) -> Iterator[Finding]:
    """Yield streets with numbers, boxes, and the places and codes that stand with them."""
    if not has_digit(text):
        return
    for match in _NUMBER_FIRST.finditer(text):
        sure = match[1].title() in _SURE_ENGLISH
        word = _BEFORE_NUMBER.search(text, max(0, match.start() - _LONGEST_BEFORE_NUMBER), match.start())
        start = word.start() if word else match.start()
        yield Finding(start, match.end(), PiiType.ADDRESS, 0.75 if sure else 0.6)
        yield from _after(text, match.end())
    for match in _COMPOUND.finditer(text) if holds(text, _COMPOUND_ENDS) else ():
        before = _COMPOUND_BEFORE.search(text, max(0, match.start() - _LONGEST_BEFORE), match.start())
        if before:
            yield Finding(before.start(), match.end(), PiiType.ADDRESS, 0.7)
            yield from _after(text, match.end())
    for match in _DOUBTFUL_ENDS.finditer(text):
        before = _COMPOUND_BEFORE.search(text, max(0, match.start() - _LONGEST_BEFORE), match.start())
        if before and _EXPECTED.search(text, max(0, before.start() - _LONGEST_BEFORE_NUMBER), before.start()):
            yield Finding(before.start(), match.end(), PiiType.ADDRESS, 0.6)
            yield from _after(text, match.end())
    for pattern in (_WORD_FIRST, _NUMBER_THEN_WORD):
        for match in pattern.finditer(text):
            yield Finding(*match.span(), PiiType.ADDRESS, 0.7)
            yield from _after(text, match.end())
    lower = lowered(text)
    for pattern, needed in ((_BOX, _BOX_WORDS), (_MILITARY, (" aa ", " ae ", " ap "))):
        for match in pattern.finditer(text) if holds(lower, needed) else ():
            yield Finding(*match.span(), PiiType.ADDRESS, 0.9)
            yield from _after(text, match.end())
    for match in _PLACE_AND_CODE.finditer(text):
        yield Finding(*match.span(), PiiType.ADDRESS, 0.7)
    for match in _POLISH_LINE.finditer(text):
        yield Finding(*match.span(1), PiiType.ZIP, 0.65)
        yield Finding(*match.span(2), PiiType.LOCATION, 0.65)
    for match in _POSTCODE.finditer(text):
        yield Finding(*match.span(), PiiType.ZIP, 0.6)


def _after(text: str, end: int) -> Iterator[Finding]:
    """Yield the place and the code after a street, in either order."""
    join = _JOIN.match(text, end)
    at = join.end() if join else end
    if at == end:
        return
    if rest := _BRAZILIAN_REST.match(text, end):
        yield Finding(at, rest.end(), PiiType.ADDRESS, 0.7)
    elif both := _CODE_AND_PLACE.match(text, at):
        yield Finding(*both.span(1), PiiType.ZIP, 0.7)
        yield Finding(*both.span(2), PiiType.LOCATION, 0.65)
    elif place := _PLACE.match(text, at):
        yield Finding(*place.span(), PiiType.LOCATION, 0.6)
        join = _JOIN.match(text, place.end())
        if join and (code := _CODE.match(text, join.end())):
            yield Finding(*code.span(), PiiType.ZIP, 0.65)
