"""In which encodings a text can be read is found out by its bytes."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.reading.encodings import (
    ENCODINGS_MAX,
    SAMPLE_BYTES,
    Encoding,
    encoding_of,
    encodings_of,
    marked,
)
from sealab.server.privacy.reading.file_texts import texts_of

WORDS = "customer_name;email\r\nZoë Krüger;zoe@corp.example\r\n"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "cp1252"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=80))
def test_a_text_comes_back_from_the_encoding_that_is_found(encoding: str, text: str) -> None:
    data = (WORDS + text + "\n" + WORDS).encode(encoding)
    found = encoding_of(data)
    assert found is not None
    assert data.decode(found) == WORDS + text + "\n" + WORDS
    told = marked(data)
    assert told is not None
    assert data.removeprefix(told.mark).decode(told.name) == WORDS + text + "\n" + WORDS


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200))
def test_what_is_utf_8_is_read_as_that(text: str) -> None:
    assert encoding_of(text.encode()) in {"utf-8", "utf-8-sig"}


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 4,
        os.urandom(4000),
        b"\x00" * 5000,
        b"\x7fELF" + b"\2\1\1" + b"\0" * 9 + bytes(range(256)),
    ],
)
def test_what_is_no_text_is_none(data: bytes) -> None:
    assert encoding_of(data) is None


def test_a_sample_may_end_within_a_character() -> None:
    data = "é".encode() * SAMPLE_BYTES
    assert encoding_of(data[: SAMPLE_BYTES - 1]) == "utf-8"


def test_a_file_is_read_on_to_see_whether_all_of_it_is_utf_8_and_is_where_it_was_then() -> None:
    file = io.BytesIO(b"x" * 2 * SAMPLE_BYTES + b"\xe9")
    assert marked(file.getvalue()[:SAMPLE_BYTES], file) == Encoding("cp1252")
    assert file.tell() == 0
    mixed = io.BytesIO("é".encode() + b"x" * 2 * SAMPLE_BYTES + b"\xe9")
    assert marked(mixed.getvalue()[:SAMPLE_BYTES], mixed) == Encoding("utf-8")


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
