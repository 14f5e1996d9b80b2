"""What of a finding is hidden, and what is left as it is."""

from __future__ import annotations

import pytest

from sealab.sandbox.job import Json
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode

from ..found import found, found_in


def test_a_title_is_no_part_of_a_name(fast: Detector) -> None:
    for text, name in (
        ("Dr. Anna Weber met us.", "Anna Weber"),
        ("Frau Prof. Dr. Anna Weber kommt.", "Anna Weber"),
        ("Dipl.-Ing. Hans Maier kommt.", "Hans Maier"),
        ("Wczoraj pani Anna Kowalska była tutaj.", "Anna Kowalska"),
        ("डॉ. अमित शर्मा ने फ़ोन किया।", "अमित शर्मा"),
        ("اتصل الدكتور محمد القحطاني أمس.", "محمد القحطاني"),
        ("Звонила г-жа Анна Петрова.", "Анна Петрова"),
    ):
        assert (name, "PERSON") in found(fast, text)


def test_a_name_has_one_form_with_and_without_a_title_in_fields_too(balanced: Detector) -> None:
    fields: Json = [{"name": "Dr. Anna Weber"}, {"full_name": "Anna Weber"}]
    assert found_in(balanced, fields) == ["Anna Weber", "Anna Weber"]
    assert found_in(balanced, [{"氏名": "山田太郎様"}]) == ["山田太郎"]


def test_an_amount_is_no_number_of_a_person_for_the_word_beside_it_and_a_number_is(
    fast: Detector, balanced: Detector
) -> None:
    for text in (
        "channel,revenue\nmobile,773421.25\nweb,1200334.10\n",
        "channel,revenue\nmobile,7734215\nweb,1200334\n",
        "channel | revenue\nmobile | 7734215\nweb | 1200334\n",
        "phone: 773421.25",
        "account 1234567.89 balance",
        '{"mobile": 773421.25}',
    ):
        assert found(balanced, text) == [], text
    for text in ("phone,5551234567", "Tel:\n030 1234567", "my mobile is 7734215", "phone\n555-867-5309\n"):
        assert [kind for _, kind in found(fast, text)] == ["PHONE"], text


def test_what_code_calls_something_is_nobodys_name_in_a_message_of_an_error(balanced: Detector) -> None:
    for message in (
        "name 'recs' is not defined",
        "NameError: name 'jane' is not defined. Did you mean: 'janet'?",
        "NameError: name 'Paris' is not defined",
        "'list' object has no attribute 'maria'",
        "AttributeError: 'Jordan' object has no attribute 'paris'",
        "KeyError: 'PERSON'",
        "KeyError: 'warehouse'",
        "cannot import name 'Anna' from 'people'",
        "f() got an unexpected keyword argument 'mark'",
    ):
        assert found(balanced, message) == [], message
        report: Json = {"error": {"type": "NameError", "message": message, "line": 3}}
        assert found_in(balanced, report) == [], message
    assert ("Jane Doe", "PERSON") in found(balanced, "name 'recs' is not defined for Jane Doe")


def test_what_is_allowed_stays_where_it_is_a_part_of_a_finding() -> None:
    text = "Please visit 12 Main Street, Springfield, IL 62704 with Anna Weber."
    allowing = Detector(DetectorOptions(mode=Mode.FAST, allow=("Springfield", "Weber")))
    said = [value for value, _ in found(allowing, text)]
    assert "12 Main Street" in said
    assert "Anna" in said
    assert not any("Springfield" in value or "Weber" in value for value in said)
    expressions = Detector(DetectorOptions(mode=Mode.FAST, allow=("/Spring[a-z]+/",)))
    assert not any("Springfield" in value for value, _ in found(expressions, text))


def test_a_part_of_what_cannot_be_divided_allows_nothing() -> None:
    allowing = Detector(DetectorOptions(mode=Mode.FAST, allow=("example.org", "jo")))
    assert found(allowing, "write to jo@example.org") == [("jo@example.org", "EMAIL")]
    inner = Detector(DetectorOptions(mode=Mode.FAST, allow=("Web",)))
    assert found(inner, "Dr. Anna Weber met us.") == [("Anna Weber", "PERSON")]


def test_a_name_that_is_an_everyday_word_is_hidden_where_it_stands_as_the_name(balanced: Detector) -> None:
    for text, names in (
        ('{"first_name": "May", "month": "May", "note": "In May sales rise"}', ["May"]),
        ("Dear May,\nthe price in May is fine.\nBest,\nPrice", ["May", "Price"]),
        ("month,dept,customer\nMay,Sales,May Sales\nJune,Price,Grant Price", ["May Sales", "Grant Price"]),
        ("Mr. Price and Mrs. May agreed in May on a price.", ["Price", "May"]),
    ):
        assert [value for value, kind in found(balanced, text) if kind == "PERSON"] == names, text


def test_a_value_counts_as_a_whole_where_all_of_it_is_hidden() -> None:
    detector = Detector(DetectorOptions(mode=Mode.FAST, allow=("Springfield", "jo@example.org")))
    for kind, value, kept in (
        ("PERSON", "Anna Weber", True),
        ("PERSON", "Dr. Anna Weber", False),
        ("PERSON", "Anna Springfield", False),
        ("PHONE", "030 1234567", True),
        ("PHONE", "773421.25", False),
        ("EMAIL", "jo@example.org", False),
    ):
        assert detector.keeps(kind, 0.9, value) == kept, value
        assert not detector.keeps(kind, 0.1, value), value


def test_a_full_name_is_found_by_a_common_family_or_given_name_of_its_country(fast: Detector) -> None:
    for text, name in (
        ("कंपनी ने वसन्त जयरामन को नया मैनेजर नियुक्त किया है।", "वसन्त जयरामन"),
        ("बैठक में मुक्ता सेनगुप्ता और अंकिता गोयल दोनों उपस्थित थे।", "अंकिता गोयल"),
        ("يعيش منتصر آل قصير هنا منذ عامين.", "منتصر آل قصير"),
        ("مدير الفرع الجديد هو فتوح الخرافي.", "فتوح الخرافي"),
        ("会议由陈秀珍主持，冯婷婷做了记录。", "陈秀珍"),
        ("会议由陈秀珍主持，冯婷婷做了记录。", "冯婷婷"),
        ("Toplantıya Ismık Seven ve Görklü Tarhan katıldı.", "Görklü Tarhan"),
        ("На встрече были Аггей Шарова и Елизар Тимофеев.", "Аггей Шарова"),
        ("En la reunión estaban Onofre Figueras y Aitor Pallarès.", "Aitor Pallarès"),
    ):
        assert (name, "PERSON") in found(fast, text)
    for town in ("मोतिहारी", "बहादुरगढ"):  # where somebody comes from
        assert (town, "LOCATION") in found(fast, f"मेरे पड़ोसी पिछले साल {town} से आए थे।")
    for text in (
        "भारत सरकार ने कल नई योजना की घोषणा की और सभी दोनों राज्यों ने इसे माना।",
        "शिकायत है कि सामान नहीं पहुंचा और कोई जवाब नहीं मिला।",
        "صاحب الشركة الجديدة أرسل تقريرا عن السوق في العام الماضي.",
        "来自全国的时间数据，来源于中心系统。",
        "Dün yeni toplantı salonu açıldı ve herkes katıldı.",
        "Совет директоров вчера принял новый план развития компании.",
    ):
        assert [each for each in found(fast, text) if each[1] == "PERSON"] == [], text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("氏名：田中　太郎　生年月日：1980年5月6日", "田中　太郎"),
        ("姓名:李小龙 电话:13812345678", "李小龙"),
        ("이름:박영희 생년월일:1990.03.04 전화:010-1234-5678", "박영희"),
    ],
)
def test_a_name_ends_before_the_next_label_of_its_line_also_without_blanks(
    fast: Detector, text: str, name: str
) -> None:
    assert [text[each.start : each.end] for each in fast.find(text) if each.type == "PERSON"] == [name]
