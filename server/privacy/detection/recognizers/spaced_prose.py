"""People, places and streets in sentences in Devanagari, Arabic and Cyrillic.

Texts are given as `readable` writes them, so that a word is letters alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from ..findings import Finding, PiiType
from ..names import (
    ARABIC_CITIES,
    ARABIC_LIKE_PARTICLES,
    ARABIC_NO_NAMES,
    CYRILLIC_CITIES,
    CYRILLIC_NO_FAMILIES,
    HINDI_CITIES,
    HINDI_COMMON_WORDS,
    HINDI_NO_NAMES,
    HINDI_TOWNS,
    is_arabic_family_name,
    is_arabic_name,
    is_cyrillic_family_name,
    is_cyrillic_given_name,
    is_hindi_family_name,
    is_hindi_given_name,
    is_hindi_name,
    looks_like_local_name,
)
from ..scripts import ARABIC, CYRILLIC, DEVANAGARI, HAN, HANGUL, KANA, readable

_HAS_DEVANAGARI, _HAS_ARABIC, _HAS_CYRILLIC = (re.compile(f"[{each}]") for each in (DEVANAGARI, ARABIC, CYRILLIC))
_HINDI_WORD, _ARABIC_WORD = f"[{DEVANAGARI}]{{1,24}}", f"[{ARABIC}]{{1,24}}"
_WORDS_OF = {script: re.compile(f"[{letters}]{{1,24}}") for script, letters in (("hi", DEVANAGARI), ("ar", ARABIC))}
_SPACE = re.compile(r"[ ]")


def _either(words: str) -> str:
    said = sorted((re.escape(readable(word)) for word in words.split("|")), key=len, reverse=True)
    return f"(?:{'|'.join(said)})"


_HINDI_TITLE = re.compile(
    rf"(?<!\w)(?:{_either('श्री|श्रीमती|सुश्री|कुमारी|डॉ.|डॉ|डा.|पंडित|श्रीमान|ग्राहक|मरीज|कर्मचारी|संमानित|आदरणीय|मेरा नाम|प्रिय')}) ({_HINDI_WORD}(?: {_HINDI_WORD})?)"
)
_HINDI_HONOURED = re.compile(
    rf"(?<!\w)({_HINDI_WORD} {_HINDI_WORD}(?: {_HINDI_WORD})?) (?={_either('जी|साहब|महोदय')}(?!\w))"
)
_HINDI_SUBJECT = re.compile(
    rf"(?m)(?:^|[।.,] ?|{_either('कृपया|हमारी|हमारे|कल|आज|हमने')} )({_HINDI_WORD} {_HINDI_WORD}(?: {_HINDI_WORD})?)(?= (?:{_either('का जन्म|की जन्म|ने फ़ोन|ने फोन|ने कार्ड|ने भुगतान|ने संपर्क|ने बताया|ने कहा|ने लिखा|ने ऑर्डर|का पैसा|का सामान|का पता|का ऑर्डर|को फ़ोन|से मिल')}))"
)
_HINDI_AGENT = re.compile(
    rf"(?<!\w)({_HINDI_WORD}) ({_HINDI_WORD}) (?={_either('ने|की जन्म|का जन्म|के जन्म|का पैसा|का सामान|का खाता|के खाते|से मिल|से मिलकर|से मिले|से मिली|से मिलने|से मुलाकात|से मुलाक़ात|से बात|को फ़ोन|को फोन|को भेजा|को भेज|के लिए|का पता|का ईमेल|का फ़ोन|का फोन|का नंबर')}(?!\w))"
)
_HINDI_PLACE = re.compile(
    rf"(?<!\w)({_HINDI_WORD})(?= (?:{_either('शहर|में रह|में निवास|के निवासी|की निवासी|में जन्म|चली गई|चले गए|चला गया|पहुँच|पहुंच|में स्थित|से आए|से आई|में मिल|में')})(?!\w)?)"
)
_HINDI_MET = re.compile(
    rf"(?<!\w)({_HINDI_WORD}) {_either('में')} ({_HINDI_WORD} {_HINDI_WORD}(?: {_HINDI_WORD})?)(?= {_either('से मिल|से मुलाकात|से मुलाक़ात|के साथ')})"
)
_HINDI_TOWN = re.compile(rf"(?<!\w)({_HINDI_WORD})(?= {_either('की|के|का|से|तक|में|और|निवासी|शाखा|कार्यालय')}(?!\w))")
_HINDI_NEAR = re.compile(
    _either(
        "मुलाकात|मुलाक़ात|रहते|रहता|हुआ था|हुआ|हुई|पहुँच|पहुंच|रहती|निवासी|चली गई|चले गए|चला गया|बस गए|मिलकर|मिले|स्थित|शहर|आए थे|जन्म|अनुबंध"
    )
)
_HINDI_ADDRESS = re.compile(
    rf"(?<![\w/-])\d{{1,4}}(?:/\d{{1,5}})? {_HINDI_WORD}(?: {_HINDI_WORD}){{0,2}}(?:, ?{_HINDI_WORD}(?:[- ]{{1,3}}\d{{6}})?(?!\w))?(?=, | {_either('पर|में|का|की|के|है')}(?!\w)|[।.,;\n]|\Z)"
)
_HINDI_SETTLES = re.compile(_either("पता|पार्सल|भेज|मंगवा|पहुँचा|पहुंचा|डिलीवर|सामान|स्थित|निवास|रह"))

_ARABIC_TITLE = re.compile(
    rf"(?<!\w)[ولبف]?(?:{_either('السيد|السيدة|الأستاذ|الأستاذة|الدكتور|الدكتورة|المهندس|المهندسة|الآنسة|العميل|العميلة|عميلتنا|عميلنا|المريض|المريضة|الموظف|الموظفة|للسيد|للسيدة|زميلنا|زميلتنا|اسمي|اسمه|اسمها|المدعو|باسم')}) ({_ARABIC_WORD}(?: {_ARABIC_WORD}){{0,3}})"
)
_ARABIC_HONOUR = re.compile(rf"{_either('السيد|السيدة|الأستاذ|الأستاذة|الدكتور|الدكتورة|المهندس|المهندسة|الآنسة')} \Z")
_ARABIC_NO_PLACES = frozenset(
    readable(
        "الإقامة الميلاد الولادة السكن العميل العميلة التسليم العمل القاعة الوقت الموعد البيت المنزل المكتب الشركة"
    ).split()
)
_ARABIC_JOINS = frozenset(readable("بن ابن بنت آل أبو ابو أم عبد").split())
_ARABIC_PLACE = re.compile(
    rf"(?<!\w)(?:{_either('مدينة|في|إلى|من مدينة|بمدينة|محافظة|منطقة|بلدة|قرية')}) ((?:{ARABIC_CITIES})(?!\w)|(?:[A-Z][a-z]{{2,10}} )?(?:{_either('عبد|آل|بن')} )?{_ARABIC_WORD}[a-z]{{0,12}})"
)
_ARABIC_SUBJECT = re.compile(
    rf"(?<!\w)({_ARABIC_WORD} {_ARABIC_WORD}(?: {_ARABIC_WORD}){{0,2}})(?= {_either('من مواليد')})|(?<!\w)(?:{_either('ميلاد|ولد|ولدت|طلب|طلبية|التقينا|قابلنا|حساب|زارنا|اتصل بنا|تواصل معنا')}) ({_ARABIC_WORD} {_ARABIC_WORD}(?: {_ARABIC_WORD}){{0,2}})"
)
_ARABIC_HOUSE = re.compile(
    rf"(?<!\w)({_ARABIC_WORD})(?: {_either('الدين|الدّين|الله|الرحمن')})? {_either('آل|أبا|أبو|بن')}(?: {_either('بن')})? {_ARABIC_WORD}(?: {_either('بن')} {_ARABIC_WORD}){{0,3}}(?!\w)"
)
_ARABIC_TOWN = re.compile(rf"(?<!\w)(?:{_either('مدينة|بمدينة|محافظة|بلدة|قرية')}) \Z")
_ARABIC_LIVES = re.compile(
    rf"(?<!\w)و?{_either('يسكن|تسكن|يقيم|تقيم|ولد|ولدت|التقينا|قابلنا|انتقل|انتقلت|مقيم|يعيش|تعيش|أسكن|نسكن|أعيش|أقيم|سافر|سافرت')}(?!\w)"
)
_ARABIC_KNOWN = re.compile(rf"(?<!\w)[بول]?({ARABIC_CITIES})(?!\w)")
_ARABIC_STREET = re.compile(
    rf"(?<!\w)(?:{_either('شارع|طريق|حي|جادة')}) {_ARABIC_WORD}(?: {_ARABIC_WORD}){{0,3}}(?:[ ،,]{{1,2}}(?:رقم )?\d{{1,5}})?(?:[ ،,]{{1,3}}{_ARABIC_WORD}(?: {_ARABIC_WORD})?[ ]?\d{{5}})?"
)

_CAPITALS = "А-ЯЁІЇЄҐ"
_CYRILLIC_WORD = (
    rf"[{_CAPITALS}][{CYRILLIC}]{{0,24}}(?:['’ʼ][{CYRILLIC}]{{1,20}})?(?:-[{_CAPITALS}]?[{CYRILLIC}]{{1,20}}){{0,2}}"
)
_CYRILLIC_ROLES = (
    r"(?!(?:Врач|Лікар|Доктор|Директор|Менеджер|Клиент|Клієнт|Пациент|Пацієнт|Адвокат|Инженер|Інженер|Учител|Вчител|Профессор|Професор|Сотрудни|Працівни|Водител|Водій|Курьер|Кур'єр|Бухгалтер|Юрист|Начальник|Руководител|Керівник"
    r"|Гражданин|Громадян|Студент|Автор|Вчера|Сегодня|Завтра|Учора|Вчора|Сьогодні|Согласно|Уважаем|Шановн|Дорог|Здравствуйте|Привет)[а-яіїє]{0,5} )"
)
_CYRILLIC_NAME = re.compile(
    rf"(?<![\w-]){_CYRILLIC_ROLES}({_CYRILLIC_WORD})(?: ({_CYRILLIC_WORD}))(?: ({_CYRILLIC_WORD}))?(?![\w-])"
)
_INITIALS = re.compile(
    rf"(?<![\w-])(?:{_CYRILLIC_WORD} [{_CAPITALS}]\. ?[{_CAPITALS}]\.|[{_CAPITALS}]\. ?[{_CAPITALS}]\. ?{_CYRILLIC_WORD})"
)
_CYRILLIC_CUE = re.compile(
    r"(?<!\w)(?:[Кк]лиент\w{0,3}|[Кк]лієнт\w{0,3}|[Пп]ациент\w{0,3}|[Пп]ацієнт\w{0,3}|[Сс]отрудни\w{1,4}|[Пп]рацівни\w{1,4}|г-ну|г-жа|г-на|[Гг]осподин\w{0,2}|[Гг]оспожа|[Пп]ан|[Пп]ані|[Пп]ану|[Пп]ана|[Уу]важаем\w{2}|[Шш]ановн\w{1,3}|[Зз]овут|[Зз]вати|на имя|на ім'я|"
    rf"[Пп]олучит|[Оо]тримає|[Пп]одписал[аи]?|[Пп]ідписа\w{{1,3}}|[Зз]вонил[аи]?|[Вв]стретили|[Зз]устріли) (?:(?:пан|пані|г-н) )?({_CYRILLIC_WORD}(?: {_CYRILLIC_WORD}){{1,2}})(?![\w-])"
)
_CYRILLIC_BEFORE_NAME = re.compile(r"(?<!\w)(?:пан|пані|панна|Пан|Пані|Панна|г-н|г-жа|товарищ) \Z")
_ENGLISH_BEFORE, _ENGLISH_AFTER = re.compile(r"[A-Za-z]{2}[:,]? \Z"), re.compile(r"[,.]?(?: [A-Za-z(]|\s*\Z)")
_SENTENCE_BEFORE, _COMMA_AFTER = (
    re.compile(r"(?:\A|[\n.!?«\"] ?)\Z"),
    re.compile(r", (?:дата|род|нар|прож|меш|тел|г\. ?р|р\. ?н)|,? \d{1,2}[ .]"),
)
_ADJECTIVE = re.compile("(?:их|ых|ої|ой|ого|ому|ей|ую|ною|ние|ные|ные|ні)\\Z")
_TOWN = rf"(?:[{_CAPITALS}][{CYRILLIC}'’ʼ-]{{1,30}}(?: (?:[{_CAPITALS}][{CYRILLIC}'’ʼ-]{{1,30}}|на|над)(?: [{_CAPITALS}][{CYRILLIC}'’-]{{1,30}})?)?(?:\([{CYRILLIC}.]{{2,16}}\))?)"
_KIND_OF_TOWN = "г|гор|город|городе|города|п|пос|поселок|посёлок|с|село|селе|д|дер|деревня|деревне|к|клх|ст|станица|хутор|хуторі|хутір|місто|міста|місті|селище|селищі|м|смт|пгт"
_TOWN_NAMED = re.compile(rf"(?<![\w.])((?:(?:{_KIND_OF_TOWN})\.? ?)?(?:{_KIND_OF_TOWN})(?:\. ?| ){_TOWN})(?![\w-])")
_TOWN_CUE = re.compile(
    rf"(?<!\w)(?:(?:[Пп]ро)?(?:живет|живёт|живут|живе|мешкає|проживает|проживає|переехал[аи]?|переїхал[аи]?|переїхав|родил\w{{2,3}}|народи\w{{2,4}}|работает|працює|приехал[аи]?|приїхал[аи]?|встретили\w{{0,2}}|зустріли\w{{0,2}}|прописан\w?)(?:в|о)?)(?: (?:в|во|у|из|з|до|из|на|від)|:) (?:(?:{_KIND_OF_TOWN})\.? )?({_TOWN})"
)
_CITY_AFTER_PREPOSITION = re.compile(
    rf"(?<!\w)(?:в|во|из|у|з|із|до|под|под|біля) ([{_CAPITALS}][{CYRILLIC}'’-]{{2,24}})(?![\w-])"
)
_CASES_OF_TOWN = ("", "е", "у", "а", "и", "і", "ом", "ою", "ой", "ві")
_CYRILLIC_STREET = re.compile(
    rf"(?<![\w.])(?:(?:(?:{_KIND_OF_TOWN})\.? )?{_TOWN}, ?)?(?:ул|улица|улице|улицы|вул|вулиця|вулиці|пр|пр-т|просп|проспект|проспекте|пер|переулок|провулок|пров|бул|бульвар|б-р|наб|набережна|набережная|ш|шосе|шоссе|парк|сквер|алл|пл|площадь|площа|аллея|алея|узвіз|проезд|проїзд|тупик|майдан)\.? "
    rf"(?:[{_CAPITALS}\d][{CYRILLIC}\d'’ʼ.-]{{0,30}}(?: (?:[{_CAPITALS}\d][{CYRILLIC}\d'’.-]{{0,30}}|лет|років|й|я|ї|і))?(?: [{_CAPITALS}][{CYRILLIC}'’-]{{1,30}})?(?: \d-?[а-яії]{{1,3}})?)"
    rf"(?:,? ?(?:д|дом|буд|будинок|б)?\.? ?\d{{1,4}}(?:[/-]\d{{1,3}})?[а-яА-Я]?)?(?:,? ?(?:к|корп|стр|кв|оф|офис|квартира)\.? ?\d{{1,4}}){{0,2}}(?:, ?(?:\d{{5,6}}|{_TOWN}, ?\d{{5,6}}))?(?!\d)"
)
_ISLAND_LETTERS = f"{HAN}{KANA}{HANGUL}{DEVANAGARI}{ARABIC}"
_HAS_ISLAND = re.compile(f"[{_ISLAND_LETTERS}]")
_HAS_OTHER = re.compile(f"[{_ISLAND_LETTERS}{CYRILLIC}]")
_ISLAND = re.compile(
    rf"(?:(?<=[A-Za-z][ :])|(?<=[A-Za-z][,:.] )|(?<=^))([{_ISLAND_LETTERS}]{{2,16}}(?: [{_ISLAND_LETTERS}]{{1,16}}){{0,4}})(?=[ ][A-Za-z(]|[,.;:] ?[A-Za-z]|[.]?\Z|[ ]?\()"
)
_IN_PLACE = re.compile(r"\b(?:from|in|at|near|to) \Z")
_MIXED_PLACE = re.compile(
    rf"(?:(?<= from)|(?<= near)|(?<= in)) ((?:(?:New|East|West|North|South|Port|Lake) )?(?:[{ARABIC}]{{2,16}} )?[{ARABIC}]{{2,24}}[a-z]{{0,12}})(?= [a-z]|[,.;]|\Z)"
)
_TOWN_ENDS = ("市", "区", "町", "村", "县", "縣", "郡", "州", "시", "군", "구")


def spaced_prose(text: str) -> Iterator[Finding]:
    """Yield people, places and addresses."""
    if text.isascii() or not _HAS_OTHER.search(text):
        return
    if _HAS_ISLAND.search(text):
        for match in _ISLAND.finditer(text):
            yield from _island(text, match)
    scripts = [
        find
        for has, find in ((_HAS_DEVANAGARI, _hindi), (_HAS_ARABIC, _arabic), (_HAS_CYRILLIC, _cyrillic))
        if has.search(text)
    ]
    for find in scripts:
        yield from find(text)


def _island(text: str, match: re.Match[str]) -> Iterator[Finding]:
    """Judge words of another script within a sentence in English: names, mostly."""
    words = match[1]
    if _GLUED_BEFORE.search(text, max(0, match.start(1) - _LONGEST_GLUED), match.start(1)):
        return
    if _is_sentence(text, match) or not _NO_ISLAND.isdisjoint(words.split()):
        return
    if looks_like_local_name(words):
        yield Finding(*match.span(1), PiiType.PERSON, 0.6)
    elif (
        words.endswith(_TOWN_ENDS)
        or _IN_PLACE.search(text, max(0, match.start() - 6), match.start())
        or words in HINDI_CITIES
        or _ARABIC_KNOWN.fullmatch(words)
    ):
        yield Finding(*match.span(1), PiiType.LOCATION, 0.55)


def _is_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether words are a whole text, of more words than a name has."""
    return match.start(1) == 0 and text[match.end(1) :] in ("", ".") and len(match[1].split()) > _MOST_OF_NAME


_MOST_OF_NAME = 3
_GLUED_BEFORE, _LONGEST_GLUED = re.compile(f"[{_ISLAND_LETTERS}][A-Za-z]{{1,14}} \\Z"), 17
_NO_ISLAND = ARABIC_NO_NAMES | HINDI_NO_NAMES


def _hindi(text: str) -> Iterator[Finding]:
    for each in _hindi_names(text):
        honour = _HINDI_HONOUR.search(text, max(0, each.start - _LONGEST_HONOUR), each.start)
        yield Finding(honour.start() if honour else each.start, each.end, each.type, each.score)
    yield from _hindi_places(text)


_LONGEST_HONOUR = 20


def _hindi_names(text: str) -> Iterator[Finding]:
    yield from _hindi_full_names(text)
    start = end = -1
    known = count = 0
    last = ""
    for match in _WORDS_OF["hi"].finditer(text):
        is_name = is_hindi_name(match[0])
        if (
            count
            and match.start() == end + 1
            and text[end] == " "
            and (
                is_name
                or (
                    known == count == 1
                    and _could_be_family(match[0])
                    and not is_hindi_family_name(last)
                    and not text.startswith(_HINDI_IN, match.end())
                )
            )
        ):
            end, known, count = match.end(), known + is_name, count + 1
            continue
        if count > 1:
            yield Finding(start, end, PiiType.PERSON, 0.65)
        start, end, known, count = match.start(), match.end(), int(is_name), int(is_name)
        last = match[0]
    if count > 1:
        yield Finding(start, end, PiiType.PERSON, 0.65)
    for pattern in (_HINDI_TITLE, _HINDI_HONOURED, _HINDI_SUBJECT):
        for match in pattern.finditer(text):
            words = match[1].split()
            if words[0] in HINDI_NO_NAMES:
                continue
            kept = list(takewhile(lambda word: word not in HINDI_NO_NAMES, words))
            yield Finding(match.start(1), match.start(1) + len(" ".join(kept)), PiiType.PERSON, 0.6)
    for match in _HINDI_AGENT.finditer(text):
        if not {match[1], match[2]} & _HINDI_NO_GIVEN:
            yield Finding(match.start(1), match.end(2), PiiType.PERSON, 0.55)


def _hindi_full_names(text: str) -> Iterator[Finding]:
    """Find a common family name behind any word that may be a given name, and a given one with what marks people."""
    for first, last in _neighbours(text, "hi"):
        if first[0] in _HINDI_NO_GIVEN or last[0] in HINDI_NO_NAMES:
            continue
        if is_hindi_family_name(last[0]) or (
            is_hindi_given_name(first[0]) and _HINDI_OF_PEOPLE.match(text, last.end())
        ):
            yield Finding(first.start(), last.end(), PiiType.PERSON, 0.6)


def _neighbours(text: str, script: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield pairs of words with one space between, of which the first has more than a letter."""
    for first, last in pairwise(_WORDS_OF[script].finditer(text)):
        if last.start() == first.end() + 1 and text[first.end()] == " " and len(first[0]) > 1:
            yield first, last


_HINDI_NO_GIVEN = HINDI_NO_NAMES | HINDI_COMMON_WORDS
_HINDI_OF_PEOPLE = re.compile(rf" {_either('ने|को|द्वारा|जी|साहब|और')}(?!\w)")


def _hindi_places(text: str) -> Iterator[Finding]:
    for match in _HINDI_PLACE.finditer(text):
        if match[1] in HINDI_CITIES or (
            match[1] not in HINDI_NO_NAMES
            and len(match[1]) > 2
            and not is_hindi_name(match[1])
            and _HINDI_NEAR.match(text, match.end() + 1 + 4 * text.startswith(readable(" में "), match.end()))
        ):
            yield Finding(*match.span(1), PiiType.LOCATION, 0.55)
    for match in _HINDI_TOWN.finditer(text):
        if match[1] in HINDI_TOWNS:
            yield Finding(*match.span(1), PiiType.LOCATION, 0.5)
    for match in _HINDI_MET.finditer(text):
        if not {match[1], *match[2].split()} & _HINDI_NO_GIVEN:
            yield Finding(*match.span(1), PiiType.LOCATION, 0.55)
            yield Finding(*match.span(2), PiiType.PERSON, 0.55)
    for match in _HINDI_ADDRESS.finditer(text):
        if (
            re.search(r"\d{6}|/", match[0])
            or _HINDI_SETTLES.search(text, match.end(), match.end() + 24)
            or _HINDI_SETTLES.search(text, max(0, match.start() - 12), match.start())
        ):
            yield Finding(*match.span(), PiiType.ADDRESS, 0.7)


_HINDI_IN = (readable(" में"), readable(" को"))


_HINDI_HONOUR = re.compile(
    rf"(?<!\w)(?:{_either('श्री|श्रीमती|सुश्री|डॉ.|डॉ|कुमारी|माननीय|आदरणीय')}|{_either('सम्मान|संमान|आदर')}[{DEVANAGARI}]{{0,10}}) \Z"
)


def _could_be_family(word: str) -> bool:
    return len(word) > 2 and word not in HINDI_NO_NAMES


def _is_unknown_name(text: str, match: re.Match[str], last: str) -> bool:
    """Return whether capitalised words are a name, though no given name is known: within English, or by an ending."""
    start = match.start()
    if _ENGLISH_BEFORE.search(text, max(0, start - 5), start) and _ENGLISH_AFTER.match(text, match.end()):
        return True
    if match[1].lower() in CYRILLIC_NO_FAMILIES or _ADJECTIVE.search(match[1]) or not is_cyrillic_family_name(last):
        return False
    return (
        not _SENTENCE_BEFORE.search(text, max(0, start - 3), start) or _COMMA_AFTER.match(text, match.end()) is not None
    )


def _arabic(text: str) -> Iterator[Finding]:
    for match in _ARABIC_TITLE.finditer(text):
        for found in _arabic_name(match.start(1), match[1].split()):
            title = _ARABIC_HONOUR.search(text, match.start(), found.start)
            yield Finding(title.start() if title else found.start, found.end, found.type, found.score)
    for match in _ARABIC_SUBJECT.finditer(text):
        if match[1] or match[2].split()[0] not in ARABIC_NO_NAMES:
            yield from _arabic_name(match.start(1 if match[1] else 2), (match[1] or match[2]).split())
    yield from _arabic_bare_names(text)
    yield from _arabic_full_names(text)
    yield from _arabic_places(text)
    for match in _ARABIC_STREET.finditer(text):
        if any(map(str.isdigit, match[0])):
            yield Finding(*match.span(), PiiType.ADDRESS, 0.65)


def _arabic_bare_names(text: str) -> Iterator[Finding]:
    """Find known names that stand beside each other without a title."""
    done = 0
    words = list(_WORDS_OF["ar"].finditer(text))
    for index, word in enumerate(words):
        if word.start() < done or not is_arabic_name(word[0]):
            continue
        said = [word[0]]
        end = word.end()
        for following in words[index + 1 : index + 4]:
            if following.start() != end + 1 or text[end] != " " or following[0] in ARABIC_NO_NAMES:
                break
            if not (
                is_arabic_name(following[0])
                or following[0] in _ARABIC_JOINS
                or following[0].startswith("ال")
                or said[-1] in _ARABIC_JOINS
            ):
                break
            said.append(following[0])
            end = following.end()
        if len(said) > 1:
            start = word.start() + (word[0] not in ARABIC_LIKE_PARTICLES and word[0][0] in "لوب")
            yield Finding(start, end, PiiType.PERSON, 0.6)
            done = end


def _arabic_full_names(text: str) -> Iterator[Finding]:
    """Find a common family name, or one with the word for a house, behind any word that may be a given name."""
    for match in _ARABIC_HOUSE.finditer(text):
        if match[1] not in ARABIC_NO_NAMES:
            yield Finding(match.start(1) + _glued(match[1]), match.end(), PiiType.PERSON, 0.6)
    for first, last in _neighbours(text, "ar"):
        if is_arabic_family_name(last[0]) and first[0] not in _ARABIC_NO_GIVEN and not first[0].startswith("ال"):
            yield Finding(first.start() + _glued(first[0]), last.end(), PiiType.PERSON, 0.6)


_ARABIC_NO_GIVEN = ARABIC_NO_NAMES | _ARABIC_JOINS


def _glued(word: str) -> int:
    """Return how many letters of a word are particles that are written together with the name behind them."""
    return int(word[0] in "ولب" and not is_arabic_name(word[:1] + word[1:]) and is_arabic_name(word[1:]))


def _arabic_places(text: str) -> Iterator[Finding]:
    for match in _ARABIC_PLACE.finditer(text):
        said_place = match[1]
        if _ARABIC_KNOWN.fullmatch(said_place) or (
            said_place.split()[0] not in ARABIC_NO_NAMES | _ARABIC_NO_PLACES
            and len(said_place) > 2
            and (
                _ARABIC_TOWN.search(text, max(0, match.start(1) - 10), match.start(1))
                or _ARABIC_LIVES.search(text, max(0, match.start() - 30), match.start())
            )
        ):
            yield Finding(*match.span(1), PiiType.LOCATION, 0.55)
    for match in _MIXED_PLACE.finditer(text):
        if not looks_like_local_name(match[1]):
            yield Finding(*match.span(1), PiiType.LOCATION, 0.5)


def _arabic_name(start: int, words: list[str]) -> Iterator[Finding]:
    kept: list[str] = []
    for word in words:
        if word in ARABIC_NO_NAMES:
            break
        if (
            len(kept) < 2
            or is_arabic_name(word)
            or word in _ARABIC_JOINS
            or word.startswith("ال")
            or kept[-1] in _ARABIC_JOINS
        ):
            kept.append(word)
            continue
        break
    if kept:
        yield Finding(start, start + len(" ".join(kept)), PiiType.PERSON, 0.6)


def _cyrillic(text: str) -> Iterator[Finding]:
    for match in _CYRILLIC_NAME.finditer(text):
        words = [(match[group], match.span(group)) for group in (1, 2, 3) if match[group]]
        given = [is_cyrillic_given_name(word) for word, _ in words]
        if not any(given) and not _is_unknown_name(text, match, words[-1][0]):
            continue
        while (
            len(words) > 2 and any(given) and not given[0] and not given[2] and not is_cyrillic_family_name(words[0][0])
        ):
            words, given = words[1:], given[1:]
        start, end = words[0][1][0], words[-1][1][1]
        titled = _CYRILLIC_BEFORE_NAME.search(text, max(0, start - 6), start)
        yield Finding(titled.start() if titled else start, end, PiiType.PERSON, 0.7)
    for match in _CYRILLIC_CUE.finditer(text):
        parts = match[1].split()
        if any(map(is_cyrillic_given_name, parts)) or (
            not _ADJECTIVE.search(parts[0]) and parts[0].lower() not in CYRILLIC_NO_FAMILIES
        ):
            yield Finding(*match.span(1), PiiType.PERSON, 0.6)
    for match in _INITIALS.finditer(text):
        yield Finding(*match.span(), PiiType.PERSON, 0.65)
    for match in _CYRILLIC_STREET.finditer(text):
        if any(map(str.isdigit, match[0])):
            yield Finding(*match.span(), PiiType.ADDRESS, 0.75)
    for pattern in (_TOWN_NAMED, _TOWN_CUE):
        for match in pattern.finditer(text):
            yield Finding(*match.span(1), PiiType.LOCATION, 0.6)
    for match in _CITY_AFTER_PREPOSITION.finditer(text):
        low = match[1].lower()
        if any(
            low.endswith(end)
            and (
                low.removesuffix(end) in CYRILLIC_CITIES
                or low.removesuffix(end) + "а" in CYRILLIC_CITIES
                or low.removesuffix(end) + "ь" in CYRILLIC_CITIES
            )
            for end in _CASES_OF_TOWN
        ):
            yield Finding(*match.span(1), PiiType.LOCATION, 0.55)
