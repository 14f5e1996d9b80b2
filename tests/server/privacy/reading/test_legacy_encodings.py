"""A text that is no Unicode is looked through in each encoding in which it reads as words."""

from __future__ import annotations

import io
import os

import pytest

from sealab.server.privacy.reading.file_texts import texts_of
from sealab.server.privacy.reading.legacy_encodings import ENCODINGS_MAX, encodings_of

TEXTS = {
    "cp1252": "artikel;preis;käufer\r\nGröße 1;1,50 €;Jürgen Müller\r\n",
    "cp1250": "zboží;zákazník;město\r\nčerný čaj;Jiří Dvořák;Plzeň\r\nzelený čaj;Růžena Šťastná;Děčín\r\n",
    "iso8859_2": "towar;klient;miasto\r\nksiążka;Łukasz Wiśniewski;Łódź\r\nmąka;Żaneta Gęś;Poznań\r\n",
    "cp1254": "ürün;müşteri;şehir\r\nçay;Ayşe Yıldız;İzmir\r\nşeker;Çağrı Öztürk;Muğla\r\n",
    "cp1251": "товар;покупатель;город\r\nкнига;Мария Кузнецова;Москва\r\nхлеб;Пётр Смирнов;Омск\r\n",
    "koi8_u": "товар;покупатель;город\r\nкнига;Мария Кузнецова;Москва\r\nхлеб;Пётр Смирнов;Омск\r\n",
    "cp866": "товар;покупатель;город\r\nкнига;Мария Кузнецова;Москва\r\nхлеб;Пётр Смирнов;Омск\r\n",
    "cp1253": "προϊόν;πελάτης;πόλη\r\nβιβλίο;Μαρία Παπαδοπούλου;Αθήνα\r\n",
    "cp1255": "מוצר;לקוח;עיר\r\nספר;שרה כהן;חיפה\r\n",
    "cp1256": "المنتج;المشتري;المدينة\r\nكتاب;فاطمة حسن;القاهرة\r\n",
    "cp932": "商品,購入者,数\r\nりんご,佐藤花子,3\r\nみかん,鈴木一郎,4\r\n",
    "euc_jp": "商品,購入者,数\r\nりんご,佐藤花子,3\r\nみかん,鈴木一郎,4\r\n",
    "gb18030": "产品,买家,数量\r\n苹果,王小明,3\r\n香蕉,李娜,4\r\n",
    "big5": "產品,買家,數量\r\n蘋果,王小明,3\r\n香蕉,李娜,4\r\n",
    "cp949": "상품,구매자,수량\r\n사과,김민수,3\r\n바나나,이영희,4\r\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_a_text_is_read_as_it_was_written_among_the_ways_to_read_it(encoding: str) -> None:
    data = TEXTS[encoding].encode(encoding)
    assert len(encodings_of(data)) <= ENCODINGS_MAX
    assert TEXTS[encoding] in list(texts_of(io.BytesIO(data), len(data)))


def test_what_is_unicode_or_plain_is_read_in_one_way() -> None:
    assert encodings_of("Zoë Krüger".encode()) == ("utf-8",)
    assert encodings_of(b"Jane Roe") == ("utf-8",)
    assert encodings_of("Zoë".encode("utf-16")) == ("utf-16",)


@pytest.mark.parametrize("data", [os.urandom(4000), b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, b"\x00" * 5000])
def test_what_is_no_text_is_read_in_none(data: bytes) -> None:
    assert encodings_of(data) == ()
