"""What detection finds and what it leaves alone, in the forms that tool results have and in texts made to break it."""

from __future__ import annotations

import itertools
import json
import sys
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.sandbox.job import Json
from sealab.server.privacy.detection.detect import DetectionFailed, Detector, DetectorOptions, Finding, KeyedText, Mode
from sealab.server.privacy.detection.findings import PiiType
from sealab.server.privacy.detection.fitting import same_values
from sealab.server.privacy.detection.keys import judge
from sealab.server.privacy.detection.scripts import lowered, parted, readable

from ..found import found, found_in, in_mode
from ..marked_texts import MarkedText, read_marked

MARKED = read_marked("marked.txt")
CLEAN = read_marked("clean.txt")


@pytest.mark.parametrize("marked", MARKED, ids=lambda marked: marked.title)
def test_what_is_personal_is_found_without_a_model_and_nothing_else_is(fast: Detector, marked: MarkedText) -> None:
    findings = fast.find(marked.text)
    for start, end, kind in marked.marks:
        hidden = {i for each in findings for i in range(max(start, each.start), min(end, each.end))}
        letters = {i for i in range(start, end) if marked.text[i].isalnum()}
        assert letters <= hidden, f"{marked.text[start:end]!r} shows in {found(fast, marked.text)}"
        types = {each.type for each in findings if each.start < end and each.end > start}
        assert types & {kind, "ADDRESS" if kind in {"ZIP", "LOCATION"} else kind}, (marked.text[start:end], types)
    for each in findings:
        assert any(start < each.end and each.start < end for start, end, _ in marked.marks), each
    assert all(a.end <= b.start for a, b in pairwise(findings)), "they are disjoint and in order"


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("clean", CLEAN, ids=lambda clean: clean.title)
def test_code_and_settings_are_left_alone(fast: Detector, balanced: Detector, clean: MarkedText, mode: Mode) -> None:
    assert found(fast if mode is Mode.FAST else balanced, clean.text) == []


def test_names_in_prose_are_found_by_the_model_and_by_a_given_name_without_it(
    fast: Detector, balanced: Detector
) -> None:
    for text, name in (
        ("Yesterday Thessaly Delacroix asked whether her order had been shipped.", "Thessaly Delacroix"),
        ("I talked to Tobias about the renewal, and he will think about it.", "Tobias"),
        ("The report was written by our colleague Chidi Okonkwo in Lagos.", "Chidi Okonkwo"),
        ("please ask goffredo mameli whether they will come to us at noon", "goffredo mameli"),
        ("We had lunch with miriam oyelaran about the lease", "miriam oyelaran"),
        ("I'm late. Yesterday I met herbert lindqvist, and I think he will sign.", "herbert lindqvist"),
        ("With [EMAIL_31wbexrg68] in copy we wrote to Thessaly Delacroix about it.", "Thessaly Delacroix"),
    ):
        assert (name, "PERSON") in found(balanced, text)
        assert (name, "PERSON") not in found(fast, text)
    text = "Yesterday Marguerite Delacroix asked whether her order had been shipped."
    assert found(fast, text) == [("Marguerite Delacroix", "PERSON")]


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("Tenant: Ottilie Brannock Date of Birth: 03/04/1971 Room: 12\n", ["Ottilie Brannock", "03/04/1971"], []),
        ("Guest: Petra Varga Home Phone: 030 2345678 Fax: none\n", ["Petra Varga", "030 2345678"], []),
        ("INSURED: VARGA, PETRA M POLICY NO: 88123771\n", ["VARGA, PETRA M", "88123771"], []),
        ('name,ward\n"OBERMEIER, KLAUS",A\nPETRA VARGA,B\n', ["OBERMEIER, KLAUS", "PETRA VARGA"], []),
        ("We thank Mrs. Varga. Please pay soon.", ["Varga"], ["Please pay"]),
        (
            "konto: at61 1904 3002 3457 3201 und FR 76 3000 6000 0112 3456 7890 189",
            ["at61 1904 3002 3457 3201"],
            ["und"],
        ),
        ("henkilötunnus 131052-308T, Versicherten-Nr. A123456780", ["131052-308T", "A123456780"], []),
        ("マイナンバー 123456789018 주민번호 900101-1234567", ["123456789018", "900101-1234567"], []),
        ("電話：０３－１２３４－５６７８", ["０３－１２３４－５６７８"], []),
        ("公民身份号码：110105194912310038 身份證字號 A123456789", ["110105194912310038", "A123456789"], []),
        ("आधार संख्या 3675 9834 6015", ["3675 9834 6015"], []),
        ("联系人：李小明，手机13912345678", ["13912345678"], []),
        ("Заявитель: Орлова Мария, паспорт 4510 654321", ["4510 654321"], []),
        ("IBAN NL91 ABNA 0417 16…", ["NL91 ABNA 0417 16"], []),
        (
            "PID|1||88^^^HOSP^MR||BRANNOCK^OTTILIE^M||19710304|F|||4 OAK LN^^RENO\n",
            ["BRANNOCK^OTTILIE^M", "19710304"],
            ["PID"],
        ),
        ("https://crm.example.com/contacts/petra-brannock/edit", ["petra-brannock"], []),
        (
            "https://crm.example.com/users/sign-in /profile/edit-profile /people/search-results",
            [],
            ["sign", "edit", "search"],
        ),
        ("petra.brannock 2:05 PM\nthe build is done\n", ["petra.brannock"], ["build"]),
        ("account 210987654321 in us-east-1, arn:aws:s3:::logs", [], ["210987654321"]),
        ("NIR 1 84 12 76 451 089 46", ["1 84 12 76 451 089 46"], []),
        ("Guarantor: BRANNOCK, OTTILIE M  MRN: 77812\n", ["BRANNOCK, OTTILIE M"], []),
        ("Poręczyciel: Petra Varga\nDriver: unavailable\n", ["Petra Varga"], ["unavailable"]),
        (
            "x 110105194912310038, vrgptr71c44h501o, 131052-308T",
            ["110105194912310038", "vrgptr71c44h501o", "131052-308T"],
            [],
        ),
        (
            "756.9217.0769.85 529.982.247-25 X1234567L ABCPK1234L",
            ["756.9217.0769.85", "529.982.247-25", "X1234567L"],
            [],
        ),
        (
            "part 756.9217.0769.84 529.982.247-26 X1234567A 110105194912310022",
            [],
            ["756.9217.0769.84", "529.982.247-26"],
        ),
        ("https://wa.me/447700900123, Ph. 555 0144", ["447700900123", "555 0144"], ["wa.me"]),
        ("0000005105105105105100", ["5105105105105100"], []),
        ("invoice_Klaus_Obermeier_2024.pdf Varga-Petra-CV.docx", ["Klaus_Obermeier", "Varga-Petra"], ["CV.docx"]),
        ("thanks @petra.varga, not @pytest.fixture or @types/node", ["petra.varga"], ["pytest"]),
        ("4411 W OAK RIDGE AVE APT 5\n", ["4411 W OAK RIDGE AVE"], []),
        ("田中 美咲 様", ["田中 美咲"], []),
        ("product,price\nCalvin Klein,12\n", [], ["Calvin Klein"]),
        ('{"company": "Ben Sherman", "accountId": "210987654321"}', [], ["Ben Sherman", "210987654321"]),
        ("arn:aws:iam::210987654321:role/ops, Serial No: 0301234567", [], ["210987654321", "0301234567"]),
        ("ids: 0031877 0052537", [], ["0031877"]),
        ("Patient: Stable\nAgent: curl\nCustomer: unhappy. Owner: root.\n", [], ["Stable", "unhappy"]),
        (
            "| Mieterin | Petra Varga |\n|---|---|\n| Wohnort | Sinzig |\n| Geb.-Datum | 3. Mai 1971 |\n",
            ["Petra Varga", "Sinzig", "3. Mai 1971"],
            ["Wohnort", "Mieterin", "Datum"],
        ),
        (
            "Tfno.\t912 345 678\nPoblación\tBaza\nC.P.\t18800\nTarjeta\t4111111111111111\n",
            ["912 345 678", "Baza", "18800"],
            ["Tarjeta"],
        ),
        ("| 郵便番号 | 518-0725 |\n| 生年月日 | 1971年3月4日 |\n", ["518-0725", "1971年3月4日"], []),
        ("| Field | Meaning |\n|---|---|\n| name | Your Full Name |\n| city | The town of the guest |\n", [], ["town"]),
        ("Luogo di nascita=Asti\nC.P.=18727\nGeb.datum=10-07-1979\n", ["Asti", "18727", "10-07-1979"], ["Luogo"]),
        (
            "Huurder: Petra Varga / Postcode: 8861 KM / Kamer: 12 / Geboorteplaats: Grashoek",
            ["Petra Varga", "8861 KM", "Grashoek"],
            ["Kamer"],
        ),
        (
            "Burgerservicenummer: 276901459\nN° de sécurité sociale: 284077512345678\nSV-Nummer: 65 261073 M 419\n",
            ["276901459", "284077512345678", "65 261073 M 419"],
            [],
        ),
        ("被保険者：富竹 沙也加\nबीमित व्यक्ति: माधव यादव\nनिवास: 5 आहूजा, इलाहाबाद\n", ["富竹 沙也加", "माधव यादव"], []),
        ("出席者：深田さあや、五条　市子。欠席：岩隈 アキラ。", ["深田さあや", "五条　市子", "岩隈 アキラ"], ["出席"]),
        ("借主の木戸さゆりは不在。敬具\n有賀　英明\nお客様係", ["木戸さゆり", "有賀　英明"], ["お客様"]),
        ("穂波みずき様は上越市 66-28-42へ。池 新兵衛さんも。", ["穂波みずき", "上越市 66-28-42", "池 新兵衛"], []),
        ("皆様、お客様、受付のみなさん、神様。田中です。", [], ["皆", "客", "みな", "神"]),
        ("नमस्ते अंकुर,\nपता: (92 पाण्डेय, सागर-740596)।", ["अंकुर"], []),
        ("Presenti: Aroldo De Martini, Rita Bonavita e Lino Cornetta\n", ["Rita Bonavita", "Lino Cornetta"], []),
        ("La inquilina Nerea Daza paga. Nací el 13 de mayo de 1959.", ["Nerea Daza", "13 de mayo de 1959"], []),
        ("Geachte mevrouw van der Lede,\n", ["van der Lede"], []),
        (
            "Destinatário:\nRadija de Pierro\nColônia Vitor Pimenta, Graça, 04701-994 Vale Verde / PE\n",
            ["Radija de Pierro"],
            [],
        ),
        ("Agenda:\nQuarterly Review\nCustomer:\nAcme Holdings Ltd\n", [], ["Quarterly", "Acme"]),
        ("naar Willy-Brandt-Allee 9/1, 4641 KK, Venebrugge", ["Willy-Brandt-Allee 9/1"], []),
        ('{"authorization.acme.io/decision": "allow", "authorization_mode": "RBAC"}', [], ["allow", "RBAC"]),
        ("Invoice number: 42183017\nOrder no: 42183018\n", [], ["42183017"]),
        ("aws_access_key_id = QX7-ID\\naws_secret_access_key = QX7-KEY", ["QX7-ID"], ["aws_secret"]),
        (
            "References: <4f1a@mx.acme.org>\n <9c2b$3@mx.acme.org>\nMessage-Id: <7oh6b1$u34@acme.org>\nCc: <ottilie@acme.org>\n",
            ["ottilie@acme.org"],
            ["4f1a", "9c2b", "u34"],
        ),
        (
            "Received: from mx1 (Cyrus v2.2)\n by mx.acme.org with ESMTP id <IG6@acme.org>\n for <ottilie@acme.org>\n",
            ["ottilie@acme.org"],
            ["Cyrus", "ESMTP", "IG6"],
        ),
        (
            "User-Agent: Mozilla Thunderbird 1.0\nX-Sieve: CMU Sieve 2.2\nFrom: Petra Varga <p@acme.org>\n",
            ["Petra Varga", "p@acme.org"],
            ["Mozilla", "Sieve"],
        ),
        (
            '{"sessionIssuer": {"type": "Role", "userName": "DeployRole"}, "userName": "ovarga"}',
            ["ovarga"],
            ["DeployRole"],
        ),
        ("Adres: Leśna 7\n       58-100 Świdnica\n", ["58-100", "Świdnica"], []),
    ],
)
def test_forms_that_people_fill_in_show_their_labels_and_none_of_their_values(
    fast: Detector, text: str, values: list[str], shown: list[str]
) -> None:
    said = [value for value, _ in found(fast, text)]
    assert [value for value in values if value not in said] == [], said
    assert [part for part in shown if any(part in value for value in said)] == [], said


def test_headings_of_tables_and_words_in_capitals_are_no_names_to_the_model(balanced: Detector) -> None:
    for text in (
        "Kunde;Betrag;Anzahl;Menge\n17;12,50;3;2\n",
        "Nazwa,Wartość,Ilość,Opis\nStół,12,3,brak\n",
        "No\tTutar\tMiktar\tSipariş\n1\t12\t4\t77\n",
        "WANTS BINS SENT OUT",
        "Guten Tag,\nIhr Service Team\n",
        "Release: Jammy Jellyfish\nFix Race Condition in Job Queue\n",
        "<tr><th>Updated Date</th><th>Acquiring Institution</th></tr><tr><td>May 31, 2013</td><td>none</td></tr>",
        '{"issuer": "Oakfield Web Services, Inc.", "partner_name": "Koolblau B.V.", "partner": "Oakfield Holdings Ltd"}',
        '[{"name": "Oakfield Simple Storage", "price_unit": 0.01}, {"name": "Mario Kart 7", "price_subtotal": 44.99}]',
    ):
        assert found(balanced, text) == [], text


def test_what_is_glued_to_letters_without_spaces_is_found_without_them(fast: Detector) -> None:
    for text, value in (
        ("連絡先はtaro@example.comです", "taro@example.com"),
        ("请发到li@example.cn谢谢", "li@example.cn"),
        ("카드는 4111111111111111입니다", "4111111111111111"),
        ("口座はDE89370400440532013000で", "DE89370400440532013000"),
        ("電話03-1234-5678まで", "03-1234-5678"),
    ):
        assert [said for said, _ in found(fast, text)] == [value]


def test_a_view_of_a_text_is_as_long_as_the_text() -> None:
    for text in ("नमस्ते", "ไทยภาษา", "مُحَمَّد", "連絡先はtaro@a.jp", "e\u0301te\u0301", "\u200d", "plain"):
        assert len(readable(text)) == len(parted(text)) == len(text), text
    assert all(c.isalnum() for c in readable("नमस्ते"))


def test_labels_things_statements_and_comments_are_no_names_to_the_model(balanced: Detector) -> None:
    for text in (
        '{"sku": "CH-1", "name": "Oak Chair", "price": 129.5, "stock": 11}',
        "id,Ad Soyad,İlçe,Posta Kodu\n",
        "Posta Kodu: yok",
        "Ieri il magazzino era chiuso per tutta la giornata.",
        "id,product,quantity,unit_price\n1,Desk lamp,7,19.90\n2,Notebook A5,7,2.50\n",
        "for name in walter and not in herbert or in lindqvist:\n    pass",
        "# With thanks to Herbert Lindqvist,\n#\n# and to Anna Kowalska.\n\nimport os\n",
        "int main(void) {\n    // Herbert Lindqvist found this,\n    // and Anna Kowalska that.\n    return 0;\n}\n",
        "port = 22\n# Herbert Lindqvist asked for it,\n# and Anna Kowalska agreed.",
    ):
        assert found(balanced, text) == [], text
    for label in ("IBAN", "BIC", "IMEI", "ISIN", "SEPA"):
        text = f"My {label} is DE89370400440532013000. Send it to {label} DE89370400440532013000 please"
        assert {kind for _, kind in found(balanced, text)} == {"IBAN"}, label


def test_what_is_shaped_like_a_token_hides_no_name_beside_it(balanced: Detector) -> None:
    for token in ("[X_0123456789]", "[LOCATION_0123456789]", "[PERSON_0123456789]"):
        beside = f"Our office: we sat there near Wetherby, and ate. {token}"
        assert ("Wetherby", "LOCATION") in found(balanced, beside), token
        beside = f"We sat in Kirchfeld {token} and ate with them."
        assert any("Kirchfeld" in value for value, _ in found(balanced, beside)), token
        beside = f"{token} Yesterday we met Herbert Lindqvist and ate, and {token} so did you. {token}"
        assert ("Herbert Lindqvist", "PERSON") in found(balanced, beside), token


def test_a_word_with_a_hump_is_a_name_only_beside_a_name(balanced: Detector) -> None:
    for text in ("AbdulRahman Khan", "GianCarlo Rossi"):
        assert found(balanced, text) == [(text, "PERSON")]
    assert found(balanced, "HashMap") == []


def test_sentences_and_headings_are_not_taken_for_code(balanced: Detector) -> None:
    for text, name in (
        ("from miriam oyelaran to you and all of us:", "miriam oyelaran"),
        ("for all of us it was herbert lindqvist in that house, she said:", "herbert lindqvist"),
        ("with miriam oyelaran in the house it was like this:", "miriam oyelaran"),
        ("# Visit report\n## Met John Miller\n\n# Next we saw Anna Kowalska", "John Miller"),
        ("# Visit report\n## Met John Miller\n\n# Next we saw Anna Kowalska", "Anna Kowalska"),
        ("# Visit report\n# Met John Miller\n\nIt went well, and all of us ate.\n", "John Miller"),
        ("for all of us this was the list:\n# Visit report\n# Met John Miller\n", "John Miller"),
        ("x = 1\n\nIt was like this.\n# Visit report\n# Met John Miller\n", "John Miller"),
    ):
        assert (name, "PERSON") in found(balanced, text), text


def test_a_name_at_the_seam_of_two_windows_is_found_whole(balanced: Detector) -> None:
    for padding in range(3, 480, 53):
        text = "so we wait and see " * 12 + "x" * padding + " and then Marguerite Delacroix said that it was good. " * 2
        names = [value for value, kind in found(balanced, text) if kind == "PERSON"]
        assert "".join(names).count("Delacroix") == 2, (padding, names)


def test_a_name_is_found_after_many_lines_that_say_the_same_words(balanced: Detector) -> None:
    log = "INFO  orders.service - Order picked by Warehouse Robot without any trouble at all\n" * 60
    log += "INFO  orders.service - Order picked by Blanca Huerta without any trouble at all\n"
    assert any("Huerta" in value for value, kind in found(balanced, log) if kind == "PERSON")


def test_a_leaf_is_judged_by_the_keys_that_lead_to_it(fast: Detector) -> None:
    leaves = [
        KeyedText(("customer", "name"), "jane doe"),
        KeyedText(("service", "name"), "billing"),
        KeyedText(("customer", "phones", "0"), "030 1234567"),
        KeyedText(("note",), "  jane doe rang, mail jo@example.org\n"),
        KeyedText((), "jo@example.org"),
        KeyedText(("password",), "s3cret-word"),
        KeyedText(("empty",), ""),
    ]
    findings = fast.find_leaves(leaves)
    values = [[(leaf.text[f.start : f.end], f.type) for f in each] for leaf, each in zip(leaves, findings, strict=True)]
    assert values == [
        [("jane doe", "PERSON")],
        [],
        [("030 1234567", "PHONE")],
        [("jane doe", "PERSON"), ("jo@example.org", "EMAIL")],
        [("jo@example.org", "EMAIL")],
        [("s3cret-word", "SECRET")],
        [],
    ]
    assert fast.find_leaves([KeyedText(("dob",), "1980-01-02")])[0][0].type == "DOB"
    assert fast.find_leaves([KeyedText((), "1980-01-02")]) == [[]]


def test_leaves_hide_as_much_as_the_same_value_written_as_json(fast: Detector) -> None:
    record: Json = {"first_name": "Ann", "contact": {"email": "ann@lee.example", "tel": "+44 20 7946 0958"}, "age": "7"}
    assert found_in(fast, record) == [value for value, _ in found(fast, json.dumps(record))]


def test_types_thresholds_and_allowed_values_are_the_operators() -> None:
    text = "jo@example.org, support@example.org, DE89370400440532013000, ip 81.2.69.142"
    only = Detector(DetectorOptions(mode=Mode.FAST, types=frozenset({"EMAIL"}), allow=("support@example.org",)))
    assert found(only, text) == [("jo@example.org", "EMAIL")]
    patterns = Detector(DetectorOptions(mode=Mode.FAST, allow=(r"/.*@example\.org/",), thresholds={"IP": 0.95}))
    assert found(patterns, text) == [("DE89370400440532013000", "IBAN")]


def test_own_patterns_are_types_of_their_own() -> None:
    options = DetectorOptions(mode=Mode.FAST, patterns={"TICKET": r"\bTCK-\d{6}\b", "PLATE": r"plate: (\w+-\w+)"})
    assert found(Detector(options), "TCK-123456 has plate: B-XY12") == [("TCK-123456", "TICKET"), ("B-XY12", "PLATE")]


@pytest.mark.parametrize(
    "options",
    [{"patterns": {"lower": "x"}}, {"patterns": {"GOOD": "("}}, {"allow": ("/(/",)}, {"types": frozenset({"NOPE"})}],
)
def test_options_that_cannot_be_used_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        DetectorOptions(mode=Mode.FAST, **options)  # type: ignore[arg-type] # wrong on purpose


def test_a_failure_inside_is_an_error_and_never_an_empty_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = Detector(DetectorOptions(mode=Mode.FAST))
    detector.warm()
    monkeypatch.setattr("sealab.server.privacy.detection.detect.same_values", lambda *_: 1 / 0)
    with pytest.raises(DetectionFailed, match="withheld") as raised:
        detector.find("jo@example.org")
    assert "jo@example.org" not in str(raised.value)


def test_an_own_pattern_that_runs_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.server.privacy.detection.detect._OWN_PATTERN_SECONDS", 0.05)
    detector = Detector(DetectorOptions(mode=Mode.FAST, patterns={"BAD": r"(x+x+)+y"}))
    with pytest.raises(DetectionFailed):
        detector.find("x" * 2000)


def test_what_crosses_the_seam_of_two_blocks_is_found_once_and_whole(
    monkeypatch: pytest.MonkeyPatch, fast: Detector
) -> None:
    monkeypatch.setattr("sealab.server.privacy.detection.detect._NEAR_CHARS", (64, 40))
    for padding in range(0, 70, 3):
        text = " " * padding + "iban DE89370400440532013000 and mail jo.public@example.org"
        assert found(fast, text)[-2:] == [("DE89370400440532013000", "IBAN"), ("jo.public@example.org", "EMAIL")]


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    import subprocess

    code = (
        "import sys; from sealab.server.privacy import detectors, remote;"
        "print({'numpy', 'phonenumbers', 'sealab.server.privacy.detection.detect'} & sys.modules.keys());"
        "from sealab.server.privacy.detection.detect import Detector; Detector();"
        "print({'presidio_analyzer', 'spacy', 'onnxruntime'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert ran.stdout.split() == ["set()", "set()"]


def test_the_heading_of_a_column_tells_what_stands_in_rows_without_keys(fast: Detector) -> None:
    rows: Json = [["Grace Mbeki", 91000], ["Aiko Tanaka", 104000]]
    tables: tuple[Json, ...] = (
        {"columns": ["emp_name", "base"], "rows": rows},
        {"columns": [{"name": "emp_name"}, {"name": "base"}], "rows": rows},
        [["Name", "Ort"], ["Grace Mbeki", "-"], ["Aiko Tanaka", "-"]],
    )
    for table in tables:
        assert found_in(fast, table) == ["Grace Mbeki", "Aiko Tanaka"], table


def test_keys_in_a_row_are_nobody_speaking_and_what_has_a_price_is_no_person(fast: Detector) -> None:
    value: Json = {
        "Credentials": {"AccessKeyId": "x", "Expiration": "soon"},
        "lines": [{"name": "Pour Over", "qty": 2}],
    }
    assert found_in(fast, value) == []


def test_what_a_value_is_may_be_said_after_it(fast: Detector) -> None:
    for text, value, kind in (
        ("Qx7#kelp is the new wifi password.", "Qx7#kelp", "SECRET"),
        ("739 is not it, 739201 was your verification code", "739201", "SECRET"),
        ("K8834501 is my passport number", "K8834501", "PASSPORT"),
        ("4929 1123 9981 0043 is my visa card", "4929 1123 9981 0043", "CARD"),
        ("555-2398 is our office number", "555-2398", "PHONE"),
    ):
        assert found(fast, text) == [(value, kind)]
    for text in (
        "utf8mb4 is the token encoding",
        "sha256 is the password hash here",
        "v1.2.3 is the default token",
        "Line 1: The call of shop.get_order is not awaited. Write `await` before it.",
        "Line 2: There is no tool 'orders' with 3 arguments.",
    ):
        assert found(fast, text) == [], text
    for value in ("12 Main Street", "Apartment 4", "12 rue de la Paix", "Rose House"):
        assert found(fast, f"Line 1: {value}") == [(value, "ADDRESS")]


def test_letters_that_ignoring_case_takes_for_others_hide_no_label(fast: Detector) -> None:
    for text in ("PİN: 4711", "pın: 4711", "PA\u017f\u017fport no. X1234567", "\u212aredit\u212aarte pin: 4711"):
        assert any(each.start >= text.index(" ") for each in fast.find(text)), text


def test_small_letters_stand_where_the_capitals_stood() -> None:
    for number in range(sys.maxunicode + 1):
        assert len(lowered(chr(number))) == 1, hex(number)
    assert lowered("\u0130\u0131\u017f\u212aÄ") == "iiskä"


def test_the_same_value_is_found_where_it_overlaps_what_was_found_of_another() -> None:
    value = "12 Oak 12 Oak 12"
    text = f"{value}; 12 Oak {value}"
    overlapped = text.index("12 Oak 12 Oak 12", len(value))
    given = [Finding(0, len(value), PiiType.ADDRESS, 0.8), Finding(overlapped, overlapped + 6, PiiType.LOCATION, 0.8)]
    again = len(text) - len(value)
    assert same_values(text, given) == [Finding(again, len(text), PiiType.ADDRESS, 0.6)]


NASTY = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from("\x00\u202e\u2066\u200b\ufeff\u0301ß\n\r\t\"'\\@=:<>|,;{}[]()0123456789 -+."),
    ),
    max_size=120,
)
LIKELY = st.sampled_from(
    [
        "jo@example.org",
        "DE89370400440532013000",
        "4111 1111 1111 1111",
        "+44 20 7946 0958",
        "Jane Doe",
        '"first_name": "Ann"',
    ]
)


def test_a_line_of_a_million_characters_is_read_to_its_end(fast: Detector) -> None:
    text = "x-y" * 330_000 + " jo@example.org " + "n" * 10_000
    last = fast.find(text)[-1]
    assert text[last.start : last.end] == "jo@example.org"


def test_many_findings_cost_no_more_than_they_are(fast: Detector) -> None:
    text = "\n".join(f"user{i}@example.org, +49 30 12{i:05}" for i in range(2_000))
    assert len(fast.find(text)) >= 4_000


@pytest.mark.parametrize("mode", list(Mode))
def test_texts_of_any_characters_give_valid_findings(mode: Mode) -> None:
    detector = in_mode(mode)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.one_of(NASTY, LIKELY), max_size=6).map("".join))
    def check(text: str) -> None:
        findings = detector.find(text)
        ends = [0, *itertools.chain.from_iterable((each.start, each.end) for each in findings), len(text)]
        assert ends == sorted(ends)
        assert all(each.end > each.start and 0 <= each.score <= 1 and each.type in set(PiiType) for each in findings)

    check()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(NASTY, max_size=3).map(tuple), st.one_of(NASTY, LIKELY)), max_size=5))
def test_leaves_of_any_characters_give_findings_within_themselves(leaves: list[tuple[tuple[str, ...], str]]) -> None:
    answers = in_mode(Mode.FAST).find_leaves([KeyedText(path, text) for path, text in leaves])
    assert len(answers) == len(leaves)
    for (_, text), findings in zip(leaves, answers, strict=True):
        assert all(0 <= each.start < each.end <= len(text) for each in findings)


@settings(max_examples=200, deadline=None)
@given(st.lists(NASTY, max_size=4), NASTY)
def test_any_key_and_value_can_be_judged(path: list[str], value: str) -> None:
    verdict = judge(path, value)
    assert verdict is None or 0 < verdict.score <= 1


def test_the_words_of_mail_and_calendars_are_nobody(balanced: Detector) -> None:
    mail = (
        "Received: from [x] (unknown)\n\tfor <root@corp.example>; Sun, 13 May 2018\n"
        "Subject: Delivery Failure (jo@corp.example)\n"
    )
    assert {mail[each.start : each.end] for each in balanced.find(mail)} == {"root@corp.example", "jo@corp.example"}
    zone = "BEGIN:STANDARD\nDTSTART:20001029T030000\nTZNAME:GMT\nTZOFFSETTO:+0000\nEND:STANDARD\nEND:VTIMEZONE\n"
    event = (
        f"BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VTIMEZONE\nTZID:Europe/London\n{zone}BEGIN:VEVENT\n"
        "CATEGORIES:My special category\nDESCRIPTION:Description\nLOCATION:Secret Location\nSUMMARY:STG\n"
        "TRANSP:TRANSPARENT\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    assert balanced.find(event) == []


def test_a_card_in_small_letters_is_a_card(fast: Detector) -> None:
    card = (
        "home.begin:vcard\nfn:Quenby Astor\nbday;value=date:1963-09-21\nhome.tel;type=fax:+49 3581 123456\nend:vcard\n"
    )
    found = {card[each.start : each.end]: each.type for each in fast.find(card)}
    assert found == {"Quenby Astor": "PERSON", "1963-09-21": "DOB", "+49 3581 123456": "PHONE"}


PAPERS = [
    ("Asegurado: Ximena Barrientos Póliza: 00-99", "Ximena Barrientos", "Asegurado Póliza"),
    ("Claimant: Roderick Pemberton-Hayes Claim No: PX-2", "Roderick Pemberton-Hayes", "Claim PX-2"),
    ("Kundin: Henrike Osterloh Kd.-Nr.: 44871", "Henrike Osterloh", "44871"),
    ("Student: Imogen Hartley Tutor: Mr P Sandhu Attendance: 94%", "Imogen Hartley P Sandhu", "Attendance 94%"),
    ("Oddział: Chirurgia", "", "Chirurgia"),
    ("Diagnose: Morbus Crohn", "", "Morbus Crohn"),
    ("Owner: Backend Guild\nCustomer: Walk-in\nAgent: Jenkins Worker 3", "", "Backend Guild Walk-in Jenkins 3"),
    ("Employee: terminated. Assignee: Unassigned", "", "terminated Unassigned"),
    ("KUHN ANNELIESE\nLINDENSTR. 44\n50674 KOELN\nGRUENE TONNE\n", "KUHN ANNELIESE LINDENSTR. 44", "GRUENE TONNE"),
    ("empname\tgross\nESPOSITO LUDOVICA\t2980.00\n", "ESPOSITO LUDOVICA", "empname 2980.00"),
    ("Nome Prodotto,Prezzo\nMensola Rovere,49.90\n", "", "Nome Prodotto Mensola Rovere"),
    ("Employee\tHenrike Osterloh\nPosition\tLagerleitung\nManager\tLothar Kuhn\n", "Osterloh Lothar Kuhn", "Position"),
    (":86:166?20Miete?32GRABOWSKI LOTHAR?31X\n:25:50010517/0648489890\n", "GRABOWSKI LOTHAR 0648489890", "Miete"),
    ("0 HEAD\n0 @I1@ INDI\n1 NAME Delphine /Marchetti/\n1 BIRT\n2 DATE 12 APR 1961\n", "Delphine Marchetti 1961", "BIRT"),
    (" 1.OKAFOR/CHIDI MR 2.NYSTROM/FREJA MRS\n", "OKAFOR CHIDI NYSTROM FREJA", ""),
    ("In dem Rechtsstreit Grabowski ./. Kuhn", "Grabowski Kuhn", "Rechtsstreit"),
    ("\\name{Fiorella}{Bellini}\n\\signature{Lothar Kuhn}", "Fiorella Bellini Lothar Kuhn", "name signature"),
    ("see Kündigung_Desmond_Holloway.odt and Pay_Slip_June.PDF", "Desmond_Holloway", "Kündigung .odt Pay_Slip_June"),
    ("hi @desmond_holloway, use @lru_cache or <@U2|j.roe>", "desmond_holloway j.roe", "@lru_cache U2"),
    ("-rw-r--r-- 1 lgrabowski staff 48211 Feb  1 09:12 notes\n", "lgrabowski", "staff 48211 Feb notes"),
    ("lgrab:x:1001:1001:x:/home/lgrab:/bin/sh\nwww-data:x:33:33:w:/var/www:/bin/sh", "lgrab", "www-data"),
    ("Projektnummer 12, project number: 415104041262, Lieferschein Nr. 2024-0071", "", "415104041262 2024-0071"),
    ("Personnummer 640823-3234, samordningsnummer 701063-2391", "640823-3234 701063-2391", "samordningsnummer"),
    ("マイナンバー：１２３４５６７８９０１８　運転免許証番号 305012345678", "１２３４５６７８９０１８ 305012345678", "マイナンバー"),
    ("TAJ: 123 456 788, Kennitala 120174-3399, ת.ז. 123456782", "123 456 788 120174-3399 123456782", "TAJ Kennitala"),
    ("Hasta: Emre Yıldırım T.C. No: 10000000146", "10000000146", "T.C."),
    ("Pan X, ur. 23.09.1957 r.; nar. 15. 5. 1985; född 1964-08-23", "23.09.1957 15. 5. 1985 1964-08-23", "född"),
    ("Herrn Grabowski, Lothar, *03.11.1949, aus", "03.11.1949", "aus"),
    ("nata a Napoli il 22/08/1990, C.F. SPSLVC90M62F839X", "22/08/1990 SPSLVC90M62F839X", "C.F."),
    ("das Arbeitsverhältnis von Anneliese Kuhn endet", "Anneliese Kuhn", "Arbeitsverhältnis von"),
    ("signal.me/#p/+14155550134 viber://chat?number=%2B380501234567", "14155550134 380501234567", "viber"),
    ("İyi Günler\nHappy Friday Everyone\nBonne Journée\n", "", "Günler Friday Journée"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "hidden", "kept"), PAPERS)
def test_papers_of_many_kinds_show_nobody_and_keep_their_words(
    balanced: Detector, text: str, hidden: str, kept: str
) -> None:
    shown = list(text)
    for finding in balanced.find(text):
        shown[finding.start : finding.end] = "\0" * (finding.end - finding.start)
    left = "".join(shown)
    assert [word for word in hidden.split() if word in left] == []
    assert [word for word in kept.split() if word not in left] == []
