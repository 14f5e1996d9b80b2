"""Names in sentences of single countries, wherever they stand, and words of these languages that are none."""

from __future__ import annotations

import pytest

from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode

FAST = Detector(DetectorOptions(mode=Mode.FAST))


def _found(text: str) -> list[tuple[str, str]]:
    return [(text[each.start : each.end], each.type) for each in FAST.find(text)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("कंपनी ने वसन्त जयरामन को नया मैनेजर नियुक्त किया है।", "वसन्त जयरामन"),
        ("बैठक में मुक्ता सेनगुप्ता और अंकिता गोयल दोनों उपस्थित थे।", "अंकिता गोयल"),
        ("يعيش منتصر آل قصير هنا منذ عامين.", "منتصر آل قصير"),
        ("مدير الفرع الجديد هو فتوح الخرافي.", "فتوح الخرافي"),
        ("会议由陈秀珍主持，冯婷婷做了记录。", "陈秀珍"),
        ("会议由陈秀珍主持，冯婷婷做了记录。", "冯婷婷"),
        ("Toplantıya Ismık Seven ve Görklü Tarhan katıldı.", "Görklü Tarhan"),
        ("На встрече были Аггей Шарова и Елизар Тимофеев.", "Аггей Шарова"),
        ("En la reunión estaban Onofre Figueras y Aitor Pallarès.", "Aitor Pallarès"),
    ],
)
def test_a_full_name_is_found_by_a_common_family_or_given_name(text: str, name: str) -> None:
    assert (name, "PERSON") in _found(text)


@pytest.mark.parametrize("town", ["मोतिहारी", "बहादुरगढ"])
def test_an_indian_town_is_found_where_somebody_comes_from_it(town: str) -> None:
    assert (town, "LOCATION") in _found(f"मेरे पड़ोसी पिछले साल {town} से आए थे।")


@pytest.mark.parametrize(
    "text",
    [
        "भारत सरकार ने कल नई योजना की घोषणा की और सभी दोनों राज्यों ने इसे माना।",
        "शिकायत है कि सामान नहीं पहुंचा और कोई जवाब नहीं मिला।",
        "صاحب الشركة الجديدة أرسل تقريرا عن السوق في العام الماضي.",
        "来自全国的时间数据，来源于中心系统。",
        "Dün yeni toplantı salonu açıldı ve herkes katıldı.",
        "Совет директоров вчера принял новый план развития компании.",
    ],
)
def test_a_sentence_without_a_name_has_none(text: str) -> None:
    assert [each for each in _found(text) if each[1] == "PERSON"] == []
