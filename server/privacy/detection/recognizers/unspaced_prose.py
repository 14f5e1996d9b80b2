"""People, places and addresses in sentences of Japanese, Chinese and Korean, which have no capitals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..findings import Finding, PiiType
from ..names import (
    CHINESE_DOUBLE_FAMILIES,
    CHINESE_FAMILIES,
    CHINESE_GIVEN,
    CHINESE_GIVEN_LETTERS,
    CHINESE_NO_NAMES,
    CHINESE_PROVINCES,
    EAST_ASIAN_CITIES,
    JAPANESE_FAMILIES,
    JAPANESE_GIVEN_LETTERS,
    JAPANESE_PREFECTURES,
    KOREAN_FAMILIES,
    KOREAN_GIVEN_LETTERS,
    KOREAN_PROVINCES,
    is_korean_name,
)
from ..scripts import HAN, HANGUL, KANA
from .keyed_values import field


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_EAST_ASIAN = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_HAN_RUN = re.compile(f"[{HAN}]")
# The label gives nothing back: what may follow it is none of its letters, so a shorter one never fits.
_FULL_WIDTH_LABEL = re.compile(
    rf"([{HAN}{KANA}{HANGUL}A-Za-z][{HAN}{KANA}{HANGUL}\w ]{{0,14}}+(?:[(（][^()（）\n]{{1,12}}[)）])?)[ ]?[:：][ ]?([^、，。；;|｜\n:：]{{1,120}})"
)
_J_RUN = re.compile(f"(?<![{HAN}])[{HAN}]{{1,12}}")
_J_ROLES = (
    "担当者", "担当", "顧客", "患者", "社員", "会員", "契約者", "受取人", "申込者", "店長", "部長", "課長", "社長", "友人", "同僚", "先日", "昨日", "本日", "今日", "明日", "今朝",
)  # fmt: skip
_J_HONOURS = ("様", "氏", "君", "殿", "先生", "部長", "課長", "社長", "教授", "医師", "弁護士")
_J_HONOUR_AFTER = re.compile("さん|様|さま|氏|くん|君|ちゃん|殿|先生")
_J_SPACED = re.compile(f"[ \u3000]([{HAN}]{{1,3}})(?![{HAN}])")
_J_KANA_GIVEN = re.compile(
    "[ \u3000]?([ぁ-ん]{2,4}(?=さん|様|さま|氏|くん|ちゃん)|[ァ-ヶー]{2,5}(?=さん|様|さま|氏|くん|ちゃん))"
)
_J_NOBODY = re.compile(
    "お|皆|奥|母|父|兄|姉|弟|妹|娘|神|王|客|患者|業者|店員|医者|職人|各|担当|両|同|貴|本|別|仕|模|多|一|有|無|異|何|人|社|会"
)
_LONGEST_FAMILY, _LONGEST_GIVEN, _SHORTEST_UNKNOWN = 3, 3, 3
_J_PLACE = rf"[{HAN}ヶケツノ]{{1,6}}(?:市(?:[{HAN}]{{1,4}}区)?|郡[{HAN}ヶケ]{{1,5}}[町村]|(?<!地)(?<!学)区|[町村])"
_J_ADDRESS = re.compile(
    rf"(?:(?:{_any(JAPANESE_PREFECTURES)})[{HAN}{KANA}]{{1,24}}[\d０-９]{{1,4}}|\b\d{{1,3}}丁目|(?<=[{KANA}、。 ])[{HAN}{KANA}]{{1,12}}\d{{1,3}}丁目)"
    rf"[\d０-９丁目番地号ノの－‐-]{{1,16}}(?:[ \u3000][{HAN}{KANA}]{{2,14}}\d{{1,4}}(?:号室)?)?"
)
_J_CITY = re.compile(rf"(?<![{HAN}])({_J_PLACE})(?=[にでへをのから、。 \u3000]|在住|出身|$)")
_NO_CITY = frozenset(
    "都市 市区町村 地区 町村 全区 各市 同市 当市 本市 市町村 下町 港町 農村 漁村 朝市 闇市 選挙区 特区 学区 管区".split()
)
_J_STREET_IN_LATIN = re.compile(rf"\b\d{{1,4}} [{HAN}]{{1,4}} (?:Street|Avenue|Road)\b")

_C_NAME = rf"(?:(?:{_any(CHINESE_DOUBLE_FAMILIES)})|[{''.join(sorted(CHINESE_FAMILIES))}])[{''.join(sorted(CHINESE_GIVEN_LETTERS))}]{{1,2}}"
_C_CUE = "客户|顾客|联系人|收件人|寄件人|员工|患者|病人|用户|会员|业主|同事|朋友|经理|姓名|名叫|我叫|我是|昨天|今天|明天|上午|下午|晚上|早上|中午|刚才|请把|把|与|和|跟|同|给|由|对|向|为|让|找|通知|联系|感谢|见到|遇见|会见|其中|负责人|主持人|主管|司机|医生|家属|寄给|发给|打到|转到|汇到|退给|见到了|遇到|遇到了|看到|看到了|叫|经理人|签署人|交给|卖给|汇给|转给|借给|送给|来电人|联络人|法人|股东|董事|候选人|申请人|持卡人|学生|老师|代表"
_C_TITLE = "先生|女士|小姐|太太|老师|医生|同学|经理|主任|律师|教授|师傅|总(?=[，。的在说])"
_C_AFTER = "的|在|是|说|已|将|与|和|跟|用|从|于|到|住|搬|打|来|签|付|要|想|向|对|把|被|因|给|为|也|都|就|表示|申请|了|签署|签字|签名|女士|希望|今年|昨天|先生|女士|小姐|老师|出生|提交|购买|投诉|联系|确认|负责|主持|主讲|做|写|发|寄|拿|收|买|卖|回|去|有|没|不|会|能|可|该|刚|正|又|再|很|出席|参加|担任|认为|提|指|问|答|汇|获|得|进|通知|请|开|接|办|等|及|以|共|均|曾|先|代|经|陪|参与|离|退|预|下单|两|二|三|这|那|，|。|、|；|：|,|\\.|!|\\?|！|？|）|\\)|”|\\s|\\d|\\Z"
_CHINESE = re.compile(rf"(?:(?:{_C_CUE})|(?<![{HAN}]))({_C_NAME})(?={_C_TITLE}|{_C_AFTER})|({_C_NAME})(?={_C_TITLE})")
_C_COMMON_WORDS, _C_TITLED = frozenset("时于来全自都"), re.compile(_C_TITLE)
_C_COMMON = re.compile(
    rf"(?:(?:{_any(CHINESE_DOUBLE_FAMILIES)})|[{''.join(sorted(CHINESE_FAMILIES))}])(?:{_any(CHINESE_GIVEN)})"
)
_C_ADDRESS = re.compile(
    rf"[{HAN}]{{2,30}}?(?:路|街|道|巷|弄|胡同|大街|大道|村)[A-Za-z0-9]{{1,5}}(?:号院?|座|弄|栋|楼|室|单元|幢){{1,2}}(?:[A-Za-z0-9]{{1,5}}(?:号|座|栋|楼|室|单元|幢|层)){{0,4}}(?:[ ]\d{{6}})?"
)
_C_BEFORE_ADDRESS = re.compile(
    "(?:寄到|送到|寄往|送往|发到|发往|地址是|地址为|地址在|地址改为|住址|现住在|住在|居住在|搬到|搬至|位于|前往|来自|地址|位址|到了|在|到|至|往|于|是|为|从)"
)
_C_CITY = re.compile(
    rf"(?:(?:现?居?住在|住|搬到了?|搬至|移居|来自|位于|前往|出生于|生于|到了?|在|去|从|于)|(?<![{HAN}]))((?:{_any(CHINESE_PROVINCES)})?[{HAN}]{{1,6}}?(?:自治州|地区|市(?:[{HAN}]{{1,3}}[区县])?|县|州|区))(?=[，。、；的与和工居生出开签见办上办任职，。,.\s]|\Z)"
)
_C_CLAUSE = re.compile(".{0,12}[我你他她们在到于]")
_C_NO_CITY = frozenset(
    "城市 都市 超市 股市 上市 门市 全市 本市 市区 地区 小区 社区 园区 景区 校区 县区 郊区 该市 各市 省市 房市 楼市 杭州 苏州 区 市 县 州 这个地区 大会议室".split()
)
_CITY = re.compile(f"(?:{_any(EAST_ASIAN_CITIES)})(?:市|시)?")
_CITY_CUE_BEFORE = re.compile("(?:在|到了?|于|来自|住|往|从|去|、|は|に|^|「)\\Z")
_CITY_AFTER = re.compile("(?:に|で|へ|から|出身|在住|の|에서?|으?로|\\(|에 |，|。|与|和|签|工作|居住|出差)")

_K_NAME = rf"[{''.join(sorted(KOREAN_FAMILIES))}][{''.join(sorted(KOREAN_GIVEN_LETTERS))}]{{2}}"
_KOREAN = re.compile(
    rf"(?<![{HANGUL}])({_K_NAME})(?=[ ]?(?:씨|님|고객님?|군|양|선생님?|대표|과장|부장|팀장|대리|사원|환자|교수|의사|변호사)(?![가-힣]{{3}})|(?:은|는|이|가|을|를|의|과|와|도|이고|고|이며|이라고|라고|이에요|예요|께서|에게|께|한테|이라는|라는|입니다|씨)(?![{HANGUL}])|[^{HANGUL}\s\w]|\Z)"
)
_K_BEFORE = re.compile("(?:고객|담당자|직원|환자|회원|사용자|동료|친구|이름은|성함은|예금주|수취인|대표) \\Z")
_K_SURE = re.compile("[ ]?(?:씨|님|고객|군(?!청)|양(?![가-힣])|선생|대표|과장|부장|팀장|대리|사원|환자|교수)")
_K_ADDRESS = re.compile(
    rf"(?:(?:{_any(KOREAN_PROVINCES)})[ ](?:[{HANGUL}]{{1,8}}[시군구읍면동][ ]){{0,3}})?[{HANGUL}0-9]{{1,14}}(?:로|길|동|가|리|거리|대로|번길)[ ](?:지하)?\d{{1,5}}(?:-\d{{1,4}})?(?:번지)?(?:[ ]?\([{HANGUL}0-9, ]{{1,20}}\)?)?(?:[ ]\d{{1,4}}[동호]){{0,2}}"
)
_K_CITY = re.compile(
    rf"(?<![{HANGUL}])((?:(?:{_any(KOREAN_PROVINCES)})[ ])?(?!다시|즉시|잠시|혹시|역시|임시|동시|일시|필시|몇시|표시|지시|전시|게시|개시|명시|실시|감시|무시|제시|수시|암시|접시|택시|도시|친구|요구|연구|도구|기구|입구|출구|지구|욕구|복구|청구|전구|가구|인구|항구|축구|야구|장군|국군|공군|해군|육군)[{HANGUL}]{{1,4}}[시군구](?:[ ][{HANGUL}]{{1,4}}[구군])?)(?=으로|로|\(으\)로|에서?|에|의|을|를|이|가|은|는|[ ]?출신|[ ]?거주|[^{HANGUL}\w]|\Z)"
)
_K_NEAR_PLACE = re.compile(
    "(?:이사|살|삽니다|사는|거주|출신|만나|태어|방문|계약|위치|있|지점|지역|출장|근무|사는|에서|으로)"
)


def unspaced_prose(text: str) -> Iterator[Finding]:
    """Yield people, places and addresses."""
    if text.isascii() or not _EAST_ASIAN.search(text):
        return
    for match in _FULL_WIDTH_LABEL.finditer(text):
        yield from field(text, (match[1],), *match.span(2))
    if _HAN_RUN.search(text):
        is_japanese = re.search(f"[{KANA}]", text) is not None
        yield from _japanese(text) if is_japanese else _chinese(text)
        for run in _J_RUN.finditer(text) if not is_japanese else ():
            if _J_SPACED.match(text, run.end()):
                yield from _japanese_name(text, *run.span())
        for match in _CITY.finditer(text):
            if _CITY_AFTER.match(text, match.end()) and (
                is_japanese or _CITY_CUE_BEFORE.search(text, max(0, match.start() - 3), match.start())
            ):
                yield Finding(*match.span(), PiiType.LOCATION, 0.55)
    if re.search(f"[{HANGUL}]", text):
        yield from _korean(text)


def _japanese(text: str) -> Iterator[Finding]:
    for run in _J_RUN.finditer(text):
        yield from _japanese_name(text, *run.span())
    for pattern in (_J_ADDRESS, _J_STREET_IN_LATIN):
        for match in pattern.finditer(text):
            yield Finding(*match.span(), PiiType.ADDRESS, 0.75)
    for match in _J_CITY.finditer(text):
        if match[1] not in _NO_CITY:
            yield Finding(*match.span(1), PiiType.LOCATION, 0.55)


def _japanese_name(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield the name that a run of Han is, alone, before a title, or with a given name in kana or behind a space."""
    role = next((each for each in _J_ROLES if text.startswith(each, start, end)), "")
    start += len(role)
    honour = next((each for each in _J_HONOURS if text.endswith(each, start, end)), "")
    end -= len(honour)
    said = text[start:end]
    lengths = range(min(_LONGEST_FAMILY, len(said)), 0, -1)
    family = next((said[:length] for length in lengths if said[:length] in JAPANESE_FAMILIES), "")
    given = said[len(family) :]
    has_honour = bool(honour) or _J_HONOUR_AFTER.match(text, end) is not None
    if (
        family
        and not given
        and not honour
        and ((spaced := _J_SPACED.match(text, end)) or (spaced := _J_KANA_GIVEN.match(text, end)))
    ):
        if (honour := next((each for each in _J_HONOURS if spaced[1].endswith(each)), "")) != spaced[1]:
            yield Finding(start, spaced.end() - len(honour), PiiType.PERSON, 0.6)
    elif (
        family
        and len(given) <= _LONGEST_GIVEN
        and said not in EAST_ASIAN_CITIES
        and (has_honour or (given and len(said) >= _SHORTEST_UNKNOWN and set(given) <= JAPANESE_GIVEN_LETTERS))
    ):
        yield Finding(start, end, PiiType.PERSON, 0.65)
    elif has_honour and _SHORTEST_UNKNOWN <= len(said) <= 2 * _LONGEST_GIVEN and not _J_NOBODY.match(said):
        yield Finding(start, end, PiiType.PERSON, 0.5)


def _chinese(text: str) -> Iterator[Finding]:
    for match in _CHINESE.finditer(text):
        start, end = match.span(1 if match[1] else 2)
        name = text[start:end]
        is_common = name[0] in _C_COMMON_WORDS and not _C_TITLED.match(text, end)
        if (
            not is_common
            and name not in CHINESE_NO_NAMES
            and name[:2] not in CHINESE_NO_NAMES
            and name not in EAST_ASIAN_CITIES
        ):
            yield Finding(start, end, PiiType.PERSON, 0.6)
    for match in _C_COMMON.finditer(text):
        if match[0][:2] not in CHINESE_NO_NAMES:
            yield Finding(*match.span(), PiiType.PERSON, 0.6)
    for match in _C_ADDRESS.finditer(text):
        start = match.start()
        for cue in _C_BEFORE_ADDRESS.finditer(text, match.start(), match.end() - 4):
            start = cue.end()
        yield Finding(start, match.end(), PiiType.ADDRESS, 0.75)
    for match in _C_CITY.finditer(text):
        clause = _C_CLAUSE.match(match[1])
        start = match.start(1) + (clause.end() if clause else 0)
        town = text[start : match.end(1)]
        if town not in _C_NO_CITY and not town.endswith(("小区", "社区", "园区", "景区", "城市", "超市", "上市")):
            yield Finding(start, match.end(1), PiiType.LOCATION, 0.55)


def _korean(text: str) -> Iterator[Finding]:
    for match in _KOREAN.finditer(text):
        if is_korean_name(match[1]):
            is_sure = _K_SURE.match(text, match.end()) or _K_BEFORE.search(
                text, max(0, match.start() - 6), match.start()
            )
            yield Finding(*match.span(1), PiiType.PERSON, 0.7 if is_sure else 0.55)
    for match in _K_ADDRESS.finditer(text):
        yield Finding(*match.span(), PiiType.ADDRESS, 0.7)
    for match in _K_CITY.finditer(text):
        if _K_NEAR_PLACE.search(text, match.end(), match.end() + 24):
            yield Finding(*match.span(1), PiiType.LOCATION, 0.55)
