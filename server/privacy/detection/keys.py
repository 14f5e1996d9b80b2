"""What the name of a field says about its value: `customer.first_name`, `telefonnummer`, `DB_PASSWORD`.

A key is brought into words (camel, snake, kebab case, accents and separators do not matter) and looked up in a table
of rules; each rule also judges the value, so that `"password": "required"` or `"phone": "mobile"` stay as they are.
The table has the words of most European forms; `local_keys` those of other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from .findings import PiiType
from .names.local_names import looks_like_local_name
from .scripts import without_accents


def digits(value: str) -> int:
    """Count the digits."""
    return sum(map(str.isdigit, value))


def letters(value: str) -> int:
    """Count the letters."""
    return sum(map(str.isalpha, value))


def number(least: int, longest: int) -> Callable[[str], bool]:
    """Judge something like a number: at least so many digits, at most so many characters."""
    return lambda value: len(value) <= longest and digits(value) >= least and "\n" not in value and "://" not in value


def code(longest: int) -> Callable[[str], bool]:
    """Judge a code of letters and digits, such as a SWIFT code or a card's check digits."""
    return lambda value: (
        len(value) <= longest and value.replace(" ", "").isalnum() and value.lower() not in PLACEHOLDERS
    )


def phone(value: str) -> bool:
    """Judge a telephone number."""
    return 6 <= digits(value) <= 20 and len(value) <= 40 and letters(value) <= 9 and not _DATE.match(value)


def email(value: str) -> bool:
    """Judge a mail address."""
    return "@" in value.strip("@") and len(value) <= 320 and " " not in value


def zip_code(value: str) -> bool:
    """Judge a postal code."""
    return len(value) <= 12 and (digits(value) >= 3 or (digits(value) >= 2 and len(value) <= 9))


def date(value: str) -> bool:
    """Judge a date in whatever form."""
    return len(value) <= 40 and digits(value) >= 4


def address(value: str) -> bool:
    """Judge a postal address, or a line of one."""
    return (
        letters(value) >= (3 if value.isascii() else 2)
        and len(value) <= 200
        and value[0] not in "{[<$%#"
        and "://" not in value
        and "@" not in value
        and not _CALL.search(value)
        and value.lower() not in PLACEHOLDERS
        and not (value.isascii() and _IDENTIFIER.fullmatch(value) and not value[0].isupper())
    )


def address_line(value: str) -> bool:
    """Judge a line of a postal address whose label says no more than which line it is, as of a program: no sentence."""
    words = value.split()
    return address(value) and (
        value[0].isdigit() or all(digits(word) or not word[0].islower() or len(word) <= 3 for word in words)
    )


def place(value: str) -> bool:
    """Judge the name of a place."""
    return letters(value) >= 2 and len(value) <= 60 and not digits(value) and value.lower() not in PLACEHOLDERS


def username(value: str) -> bool:
    """Judge the name of an account that is a person's."""
    return (
        3 <= len(value) <= 64
        and _USERNAME.fullmatch(value) is not None
        and not value.isdecimal()
        and not _UUID.fullmatch(value)
        and value.lower() not in _SYSTEM_USERS
        and value.lower() not in PLACEHOLDERS
    )


def secret(value: str) -> bool:
    """Judge a secret of one word."""
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and not any(map(str.isspace, value))


def passphrase(value: str) -> bool:
    """Judge a secret of several words, or of one."""
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and value.count(" ") <= 24


def ip(value: str) -> bool:
    """Judge an address on a network."""
    return _IP.fullmatch(value) is not None and value not in {"0.0.0.0", "127.0.0.1"}  # noqa: S104 - compared only


_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]|\Z)")
_IDENTIFIER = re.compile(r"[\w.$-]{1,200}")
_CALL = re.compile(r"\w\(|=")
_USERNAME = re.compile(r"[\w.@+\\-]{1,64}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{16,64}")
_IP = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F:]{6,39}")
# What stands where a secret would: placeholders, references to variables, expressions, paths.
_NO_SECRET = re.compile(
    r"(?i)\$.*|<.*>|\{\{?.*\}|%\(?.*|\*+|x{3,}|\.{3,}|\[.*|null|nil|none|true|false|string|text|str|int|bytes|undefined|changeme"
    r"|required|optional|redacted|hidden|bearer|basic|password|secret|token|varchar.*|\d{1,3}|\d+(?:\.\d+){1,3}"
    r"|(?:os|process|env|config|settings|self|this|args|request|secrets|vars|var|local|data)\..*|[A-Za-z_][\w.]{0,80}\([^()]{0,80}\)|[a-z_]\w{0,40}(?:\.[a-z_]\w{0,40}){1,5}"
    r"|(?:https?|file)://[^@]*|/[\w./-]*|arn:.*|.*\.(?:pem|key|crt|json|ya?ml|txt)"
)
PLACEHOLDERS = frozenset(
    "true false null none nil string str text varchar integer int number unknown undefined n/a na admin root system "
    "anonymous user username name default email phone address required optional yes no on off test example bot tbd "
    "object array boolean private public internal external".split()
)
_SYSTEM_USERS = frozenset(
    "root admin administrator user users app postgres mysql ubuntu debian ec2-user system bot none null guest test "
    "default service nobody daemon www-data git jenkins ci deploy runner sa redis nginx apache node oracle anonymous "
    "me self you __token__ oauth2".split()
)


SURE = 0.85
LIKELY = 0.5


@dataclass(frozen=True, slots=True)
class FieldVerdict:
    """What a value is, and how sure that is."""

    type: PiiType
    score: float


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Values below a key that `key` is found in are of `type` where they fit."""

    type: PiiType
    key: re.Pattern[str]
    fits: Callable[[str], bool]


def phrases(text: str) -> re.Pattern[str]:
    """Compile phrases separated by commas, to be searched in a key.

    Words may also be written together (`first name` is `firstname` too); `*` stands for any letters at that end of a
    word; a phrase after `=` must be the whole key.
    """
    alternatives = []
    for phrase in (" ".join(part.split()) for part in text.split(",")):
        words = " ?".join(phrase.strip("=*").split())
        start = r"\A" if phrase.startswith("=") else "" if phrase.startswith("*") else r"\b"
        end = r"\Z" if phrase.startswith("=") else "" if phrase.endswith("*") else r"\b"
        alternatives.append(f"{start}{words}{end}")
    return re.compile("|".join(alternatives))


def _rule(kind: PiiType, keys: str, fits: Callable[[str], bool]) -> FieldRule:
    return FieldRule(kind, phrases(keys), fits)


NEVER = re.compile(
    r"\b(?:count|limit|type|kind|expires|expiry|expiration|ttl|length|max|min|usage|policy|bucket|hint|reset|enabled|disabled|"
    r"verified|valid|status|format|version|size|rate|total|used|index|path|file|dir|uri|url|link|href|required|regex|pattern|"
    r"field|column|label|algorithm|class|method|schema|placeholder|at|budget|timeout|prefix|suffix|source|tokens)\Z"
    r"|\A(?:is|has|max|min|num|total|count|n(?! (?:cart|tarj|kart|tel|cel))|show|hide|allow|use|enable|disable|require)\b"
)
"""Keys that never name something personal, whatever they contain: `token_count`, `is_email`, `password_policy`."""

_RULES: tuple[FieldRule, ...] = (
    _rule(
        PiiType.SECRET,
        "pass phrase, pass code, mnemonic, seed phrase, recovery phrase, recovery code*, recovery key*, unseal key*, root token, backup code*",
        passphrase,
    ),
    _rule(
        PiiType.SECRET,
        "*password*, *passwd*, pass word*, pwd, pw, pass, psw, =pin, pin number, card pin, pin code, *secret*, *api key, *access key, *private key,"
        "auth token, access token, *token, *credential, *credentials, session id, session key, session cookie, =auth, *authorization,"
        "signing key, encryption key, master key, stripe key, openai key, anthropic key, sendgrid key, twilio key, aws key, gcp key,"
        "azure key, sas key, shared key, storage key, account key, license key, licence key, hmac key, webhook key, ssh key,"
        "service key, auth key, deploy key, cookie, cookies, set cookie, jwt, otp, totp, salt, connection string, conn str, dsn,"
        "*passwort*, *kennwort*, geheimnis, mot de passe, mdp, contrasena, clave, senha, wachtwoord, haslo, losenord, sifre, parola,"
        "heslo, lozinka, salasana",
        secret,
    ),
    _rule(
        PiiType.SSN,
        "ssn, ssns, *ssn, social security*, social insurance*, sozialversicherung*, securite sociale, numero secu*, nss, =sin, sin number",
        number(7, 24),
    ),
    _rule(PiiType.IBAN, "*iban, iban*", number(8, 42)),
    _rule(
        PiiType.PASSPORT,
        "*passport*, reisepass*, passeport*, pasaporte*, passaport*, paszport*, pasaport*, passnummer, pass nr, paspoort*, pasaport*",
        number(5, 15),
    ),
    _rule(
        PiiType.DRIVING_LICENCE,
        "driver* licen*, driver* lic, drivers licen*, driving licen*, dl, licen[sc]e no, licen[sc]e num*, licen[sc]e nr, licen[sc]e id,"
        "fuhrerschein*, permis de conduire, permis conduire, patente*, rijbewijs*, cnh, prawo jazdy, korkort*",
        number(4, 24),
    ),
    _rule(
        PiiType.CARD,
        "cvv, cvv2, cvv 2, cvc, cvc2, cvc 2, =csc, card security*, card verification*, =security code",
        code(4),
    ),
    _rule(
        PiiType.CARD,
        "card no, card num*, card nr, *card number, cc, cc no, cc num*, credit card*, creditcard*, debit card*, =pan, card pan, pan number,"
        "=card, payment card, kreditkarte*, karten ?n*, carte bancaire, carte bleue, carte de credit, carte de paiement, numero carte, numero de carte, no de carte, n de carte, tarjeta*, carta di credito, carta di pagamento, numero di carta,"
        "n carta, nr carta, cartao*, kart no, kart num*, kredi kart*, banka kart*, kaart ?n*, credit ?card*, bankpas*, nr karty, numer karty, karta kredyt*, karta plat*, karty",
        number(12, 30),
    ),
    _rule(
        PiiType.TAX_ID,
        "tax id*, tax no, tax num*, tax payer*, tax code, tax ref*, tax file*, tin, ein, itin, vat, vat id, vat no, vat num*, gstin, =pan no,"
        "steuer nummer, steuer nr, steuer id*, steuernummer*, steuernr, steuerid*, ust id*, ustid*, codice fiscale, =cf, nif, cif, cpf, cnpj,"
        "rfc, cuit, cuil, rut, nip, abn, siret, siren, partita iva, p iva, btw nummer, btw, utr, numero fiscal*",
        number(5, 24),
    ),
    _rule(
        PiiType.NATIONAL_ID,
        "national id*, national num*, national insurance*, citizen id, citizen num*, aadhar*, aadhaar*, nino, =ni no, ni number,"
        "personal number, personal id*, personal code, identity num*, identity no, identity card*, id card*, id doc*, id number, id no,"
        "government id*, gov id, govt id, voter id*, employee id, employee no, employee num*, emp id, emp no, emp num*, staff id, bsn, pesel, dni,"
        "nie, curp, tckn, tc no, tc kimlik*, personnummer, personnr, personalausweis*, ausweis*, cni, fodselsnummer, cpr, cpr nr, hetu, egn, cnp,"
        "rodne cislo, oib, jmbg, emso, nric, badge id, badge no, badge num*, student id, student no, student num*, carta d identita, cedula, documento",
        number(5, 30),
    ),
    _rule(
        PiiType.MEDICAL,
        "mrn, medical record*, med rec*, patient id*, patient no, patient num*, member id, member no, member num*, insurance id,"
        "insurance no, insurance num*, insurance policy*, policy no, policy num*, policy nr, health id, health card*, health plan*,"
        "health insurance*, subscriber id, nhs*, medicare*, medicaid*, npi, dea number, dea no, versichertennummer, versicherungsnummer,"
        "versicherungs nr, krankenversicherungs*, kvnr, health record*, chart no, chart num*",
        number(4, 30),
    ),
    _rule(
        PiiType.BANK,
        "=bic, =swift, =swift code, =bic code, =bic swift, =swift bic, =bank bic, =bank swift",
        code(11),
    ),
    _rule(
        PiiType.BANK,
        "routing*, *routing number, sort code, bank account*, bank acct*, account no, account num*, account nr, *account number, acct no, acct num*,"
        "acct nr, =acct, acc no, acc num*, bsb, blz, bankleitzahl, konto nummer, kontonummer, kontonr, konto nr, =konto, ifsc*, clabe,"
        "rachunek*, nr rachunku, nr konta, hesap no*, hesap num*, banka hesab*,"
        "aba, numero de cuenta, numero cuenta, =cuenta, numero conta, =conta, rib, rekening*, conto corrente, numero conto, numer konta,"
        "beneficiary account, iban or account, debit account, credit account",
        number(5, 40),
    ),
    _rule(
        PiiType.DATE_OF_BIRTH,
        "dob, *dob, date of birth, birth date*, birth day*, birth dt, *birthdate, *birthday, bday, born, born on, d o b, *birth, geburts*,"
        "geboren*, date de naissance, date naissance, naissance, fecha de nac*, fecha nac*, nacimiento, data di nascita, data nascita,"
        "nascita, data de nasc*, data nasc*, nascimento, geboorte*, data urodzenia, fodelse*, fodsels dato, fodselsdato, dogum*, datum narozeni,"
        "syntymaaika,"
        "geb am, geb datum, geb dat, ne le, nee le, ne e le, nes le, nacid[oa]*, f nac*, nat[oa] il, nato a il, dt nasc*, nascid[oa]*, data ur, data urodz*, urodzon*, ur dnia, d tarihi, d tar, dogum*, dt nascimento",
        date,
    ),
    _rule(
        PiiType.EMAIL,
        "*email*, e ?mail*, *mail, mails, e ?posta*, poczta elektroniczna, adres mail*, correio eletronico, adresse electronique, mail address*, user principal name, upn, correo*, courriel*, posta elettronica",
        email,
    ),
    _rule(
        PiiType.PHONE,
        "*phone, *phones, phone*, *mobile, mobile no, mobile num*, mobiles, cell, cells, cell no, cell num*, cellular, tel, tels, tel no, *telephone*,"
        "fax*, *fax, *msisdn, whats app*, sms, sms to, direct line, direct dial, canonical form, contact no, contact num*, handy, handynummer, handynr,"
        "*telefon*, telef, telf, tlf, tlfn, movil*, telefono*, mobiel*, *mobiel, komork*, cep no*, cep num*, gsm*, telemovil, recapito tel*, recapito, celular*, cellulare, portable, telemovel, telefoon*, gsm, gsm no, rufnummer*, mobil, mobilnummer,"
        "mobiltel*, mob, mob no, caller id, caller num*, =caller, =callee, callback no, callback num*, dialed, e 164, e164, extension num*,"
        "puhelin*, komorka, cep tel*, numero de tel*, emergency num*, hotline, landline",
        phone,
    ),
    _rule(
        PiiType.ZIP,
        "zip, zip code*, zip 4, *zip, zipcode*, post code*, postcode*, postal code*, plz, postleitzahl, code postal, cp, codigo postal, cap, cep,"
        "c p, cod postal*, codice postale, codice di avviamento*, c a p, kod poczt*, =kod, =pk, =pc, posta kod*, cod p, code postal*, codigo postal*, postcod*,"
        "pin code, pincode, kod pocztowy, post nummer, postnummer, postnr, =postal, psc, posta kodu, irsz",
        zip_code,
    ),
    _rule(
        PiiType.ADDRESS,
        "*street, street*, =str, straat*, *adres, adres*, domicile, domicili*, residencia, residenza, ikamet*, logradouro*, endereco*, direccion*, *anschrift,"
        "*address, *addresses, address*, addr, addrs, addr 1, addr 2, addr1, addr2, addr line*, line1, line2,"
        "=adr, house no, house num*, residence, apartment, =apt, unit no, strasse*, *strasse, str nr, anschrift*, adresse*, *adresse, hausnummer, hausnr,"
        "wohnort, wohnsitz, rue, voie, direccion*, domicilio, calle, indirizzo*, =via, endereco*, logradouro, morada, adres*, straat*, *straat, ulica, cadde, sokak, mahalle,"
        "=gata, gatuadress, postadress, osoite*, utca, cim, ship to address, mailing",
        address,
    ),
    _rule(PiiType.ADDRESS, "line 1, line 2", address_line),
    _rule(
        PiiType.LOCATION,
        "*city, =town, *town, =village, municipality, suburb, hometown, birth place, birthplace, place of birth, =locality, =ort, wohnort, =stadt,"
        "ville*, =commune, ciudad*, localidad, citta*, =comune, cidade*, municipio, naturalidade, =stad, geboorteplaats, miejscowosc*, miejsce zam*, miejsce ur*, =il, =ilce, dogum yeri, city of*, town of*, place of residence, city residence, home city, commune de*, comune di*,"
        " plaats, woonplaats, miasto, postort, sehir, bairro, geburtsort, =poblacion,"
        "lieu de naissance, lugar de nac*, luogo di nascita, local de nasc*, miejsce urodz*, =mesto, =by",
        place,
    ),
    _rule(
        PiiType.USERNAME,
        "*username, *user name, =login, user login, =screen name, =handle, =nick, nick name, =uname, login name, login id, =user id, =userid, =user,"
        "=usr, sam account name, logon, logon name, =alias, =twitter, =github, =instagram, =telegram, =skype, =discord, =slack, preferred username,"
        "member name, benutzer*, usuario, utilisateur, identifiant, pseudo, gebruikersnaam, uzytkownik, nazwa uzytkownika, =uid, user handle,"
        "twitter handle, github handle, github user, github login, =actor, =author login, anvandarnamn, kullanici*",
        username,
    ),
    _rule(
        PiiType.IP,
        "ip, ips, ip addr*, *ip address, remote addr, client addr, =x forwarded for, x real ip, client ip",
        ip,
    ),
)
# An address that is not a person's: what networks and computers call so.
_NO_POSTAL_ADDRESS = re.compile(
    r"\b(?:e ?mail|mac|ip|ips|url|wallet|web|memory|bind|listen|remote|base|host|server|net|network|peer|node|btc|eth|contract|"
    r"virtual|physical|hw|from|to|return|reply)\b"
)
_PLACE_OF_BIRTH = re.compile(
    r"\b(?:\w{0,8}ort|\w{0,10}plaats|place|city|town|country|lieu|ville|lugar|ciudad|luogo|citta|local|cidade|miejsce|yeri|sted)\b"
)
# `Billing address: Jane Doe`, with the street on the next line.
BEGINS_WITH_NAME = re.compile(r"\b(?:billing|shipping|delivery|mailing|postal)\b")
GENERIC_KEYS = frozenset(
    "value values val text content number data v raw formatted primary canonical national international".split()
)
"""Keys that say nothing of their values: what is above them does."""


@lru_cache(maxsize=8192)
def rule_for(key: str) -> FieldRule | None:
    """Return the rule that speaks about a key; remembered, since payloads repeat their keys."""
    if NEVER.search(key):
        return None
    for rule in _RULES:
        if rule.key.search(key):
            if rule.type is PiiType.ADDRESS and _NO_POSTAL_ADDRESS.search(key):
                continue
            if rule.type is PiiType.DATE_OF_BIRTH and _PLACE_OF_BIRTH.search(key):
                continue
            return rule
    return None


def _plain(text: str) -> str:
    return without_accents(text).lower()


def _local_rule(kind: PiiType, keys: str, fits: Callable[[str], bool]) -> FieldRule:
    return FieldRule(kind, phrases(_plain(keys)), fits)


_LOCAL_NEVER = phrases(
    _plain(
        "*会社*, *商品*, *製品*, *店舗名*, *ファイル*, *部署*, *件数, *回数, *公司*, *产品*, *商品名*, *企业*, *部门*, *文件*, *数量, *价格, *회사*, *상품*, *제품*, *파일*, *부서*, *수량, *가격, *개수, "
        "*ชื่อไฟล์*, *ชื่อสินค้า*, *ชื่อบริษัท*, *ชื่อร้าน*, שם קובץ, שם מוצר, שם חברה, εταιρια*, προιον*, αρχειο*, نام فایل, نام محصول, نام شرکت, компани*, компані*, товар*, продукт*, файл*, организац*, організац*, количество, кількість, цена, ціна, название, назва, статус*, "
        "कंपनी*, उत्पाद*, फ़ाइल*, फाइल*, मूल्य, मात्रा, विभाग*, شركة, الشركة, المنتج, منتج, ملف, الملف, القسم, الكمية, السعر"
    )
)
_LOCAL_RULES: tuple[FieldRule, ...] = (
    _local_rule(
        PiiType.SECRET,
        "*パスワード*, *暗証番号*, *密码*, *口令*, *비밀번호*, *암호*, пароль*, كلمة المرور, كلمة السر, पासवर्ड*",
        secret,
    ),
    _local_rule(
        PiiType.IBAN,
        "*iban*, *国際口座*, *国际银行*, *국제계좌*, الآيبان, آيبان, رقم الآيبان, *आईबीएएन*",
        number(8, 42),
    ),
    _local_rule(
        PiiType.CARD,
        "*カード番号*, *カードno*, *クレジットカード*, *信用卡*, *银行卡*, *卡号*, *카드번호*, *카드 번호*, *신용카드*, *체크카드*, номер карт*, банковск* карт*, банківськ* карт*, =карта, =картка, кредитн* карт*,"
        "карта no, картка no, no карт*, *कार्ड संख्या, *कार्ड नंबर, *क्रेडिट कार्ड*, *डेबिट कार्ड*, رقم البطاقة, بطاقة الائتمان, =البطاقة, رقم بطاقة*, بطاقة",
        number(12, 30),
    ),
    _local_rule(
        PiiType.PASSPORT,
        "*旅券*, *パスポート*, *护照*, *여권*, *паспорт*, جواز السفر, رقم الجواز, पासपोर्ट*",
        number(5, 15),
    ),
    _local_rule(
        PiiType.NATIONAL_ID,
        "*マイナンバー*, *個人番号*, *身份证*, *身分證*, *주민등록번호*, *주민번호*, *외국인등록*, рнокпп, رقم الهوية, الهوية الوطنية, رقم الإقامة, आधार*, मतदाता*",
        number(5, 30),
    ),
    _local_rule(
        PiiType.TAX_ID,
        "инн, іпн, *税号*, *纳税人*, *納税者*, *사업자등록번호*, الرقم الضريبي, पैन*",
        number(5, 24),
    ),
    _local_rule(PiiType.SSN, "снилс, *社保*, *社会保障*, *年金番号*, *基礎年金*, *국민연금*", number(7, 24)),
    _local_rule(
        PiiType.DATE_OF_BIRTH,
        "*生年月日*, *誕生日*, *出生*日*, *生まれ*, *出生日期*, *出生年月*, *生日*, *생년월일*, *생일*, *출생일*, *출생 연월일*, *출생연월일*, *태어난 날*, дата рожд*, день рожд*, родил*, д р, дата народж*, день народж*, народив*, народил*, д н,"
        "г р, р н, जन्म ?तिथि, जन्म दिनांक, जन्म की तारीख, जन्मदिन*, जन्म ?दिन*, =जन्म, تاريخ الميلاد, تاريخ ميلاد, تاريخ الولادة, مواليد, يوم الميلاد",
        date,
    ),
    _local_rule(
        PiiType.ZIP,
        "*郵便番号*, =郵便, *〒*, *邮编*, *邮政编*, *우편번호*, *우편 번호*, *우편코드*, *индекс*, *індекс*, *पिन ?कोड*, *डाक कोड*, *पोस्टल कोड*, पिन, الرمز البريدي*, رمز البريد, الرقم البريدي, رمز بريدي",
        zip_code,
    ),
    _local_rule(
        PiiType.EMAIL,
        "*メール*, *eメール*, *邮箱*, *邮件*, *電子郵件*, *이메일*, *전자우편*, *메일*, эл почта, *почта, *электронн* почта, *електронн* пошта, *пошта, *имейл, *емейл, електронна адреса, электронный адрес,"
        "*ईमेल*, *ई मेल*, *मेल, البريد الإلكتروني, *بريد, البريد, الإيميل, إيميل",
        email,
    ),
    _local_rule(
        PiiType.PHONE,
        "*電話*, *携帯*, *ファックス*, *fax*, *电话*, *手机*, *座机*, *传真*, *전화*, *휴대폰*, *핸드폰*, *휴대전화*, *연락처*, *팩스*, *телефон*, *мобильн*, *мобільн*, =моб, =тел, контактный номер, факс,"
        "*फ़ोन*, *मोबाइल*, *दूरभाष*, *संपर्क नंबर, संपर्क सूत्र, الهاتف, هاتف*, رقم الهاتف, الجوال, رقم الجوال, جوال, الموبايل, موبايل, رقم التواصل, فاكس, الفاكس, المحمول",
        phone,
    ),
    _local_rule(
        PiiType.ADDRESS,
        "*住所*, *所在地*, *送付先*, सड़क, गली, *お届け先*, *配送先*, *地址*, *住址*, *주소*, *배송지*, *адрес*, улица, вулиця, место жительства, местожительство, місце проживання, прописка, पता, *का पता, *पता, العنوان, عنوان*, محل الإقامة, الشارع",
        address,
    ),
    _local_rule(
        PiiType.LOCATION,
        "*市区町村*, *都市*, *出身*, *居住地*, *出生地*, *都道府県*, *本籍*, *城市*, *籍贯*, *户籍*, =도시, *거주지*, *출생지*, *시 군 구*, *지역, =город, город *, =місто, місто *, населенн* пункт, место рожд*, місце народж*, *населений пункт, =село,"
        "शहर, नगर, निवास स्थान, जन्म ?स्थान, कस्बा, गाँव, ज़िला, जिला, المدينة, مدينة*, مكان الإقامة, مكان الميلاد, مكان الولادة, محل الميلاد",
        place,
    ),
    _local_rule(
        PiiType.USERNAME,
        "*ユーザー名*, *ユーザid*, *ログイン*, *用户名*, *账号名*, *사용자명*, *아이디*, логин, логін, имя пользователя, ім'я користувача, اسم المستخدم, उपयोगकर्ता नाम, यूज़रनेम",
        username,
    ),
)
_LOCAL_PLACE_OF_BIRTH = phrases(_plain("место*, місце*, *地, *地点, *出身*, 출생지, स्थान, शहर, مكان, محل"))
_LOCAL_NAME_KEYS = phrases(
    _plain(
        "*氏名*, *お名前*, =名前, *姓名*, =名, =姓, =氏, *名義*, *契約者*, *受取人*, *担当者*, *宛名*, *申込者*, *フリガナ*, *ふりがな*, *患者名*, *お客様名*, *顧客名*, *社員名*, *代表者*, *保護者*,"
        "*联系人*, *收件人*, *全名*, *성함*, *寄件人*, *客户名*, *客户姓*, =客户, =患者, =员工, *持卡人*, *户名*, *用户姓*, *负责人*, *申请人*, *开户人*, =名字, *紧急联系*, *收货人*,"
        "*이름*, *성명*, *고객명*, =고객, *담당자*, *예금주*, *수령인*, *받는 ?사람*, *보내는 ?사람*, *신청인*, *환자명*, =성, *연락 담당, *수취인*, *직원명*,"
        "фио, ф и о, =имя, полное имя, имя и фамилия, фамилия*, отчество, контактное лицо, клиент, =заказчик, получатель, отправитель, пациент, сотрудник, владелец, имя клиента, держатель карты, плательщик,"
        "піб, п і б, =ім'я, =ім я, повне ім*, прізвище*, по батькові, контактна особа, клієнт, =замовник, отримувач, одержувач, відправник, пацієнт, співробітник, власник, ім'я *, ім я *, платник,"
        "покупател*, *покупателя, продавец, *продавца, =заказчик, *заказчика, ученик, ученица, студент, студентка, учитель, врач, *врача, водитель, пассажир, гость, участник, арендатор, собственник, наследник, абонент, донор, автор, свидетель, должник, кредитор, заявитель, работник, подписант,"
        "купува*, покупець, *покупця, продавець, замовник, учень, учениця, лікар, водій, пасажир, гість, учасник, орендар, спадкоємець, донор, автор, свідок, боржник, заявник, працівник,"
        "клиент*, купувач, продавач, ученик, пациент, служител, собственик, получател, подател, име и фамилия, =име, фамилно име, купац, продавац, име и презиме, презиме,"
        "*購入者*, *買主*, *買い手*, *売主*, *販売者*, *顧客*, =患者, =社員, =従業員, *注文者*, *発注者*, *受領者*, *送信者*, *差出人*, =生徒, =学生, =教師, =講師, =医師, =運転手, =乗客, *宿泊者*, *参加者*, *会員名*, =会員, *借主*, *貸主*, *所有者*, *相続人*, *著者*, *応募者*, *申請者*, *作成者*, *利用者名*,"
        "*买家*, *买方*, *卖家*, *卖方*, *购买者*, *购买人*, *客户*, *顾客*, *病人*, *雇员*, =职员, *学生*, *教师*, *医生*, *司机*, *乘客*, =客人, *参与者*, =会员, *租客*, *房东*, *业主*, *作者*, *发件人*, *付款人*, *收款人*, *订购人*, *買家*, *賣家*, *買方*, *賣方*, *客戶*, *顧客*, *聯絡人*, *收件人*, *寄件人*, *負責人*,"
        "*구매자*, *판매자*, *구입자*, *주문자*, =환자, =직원, =학생, =교사, =의사, =운전자, =승객, *투숙객*, *참가자*, =회원, *임차인*, *임대인*, *소유자*, *저자*, *지원자*, *발신자*, *작성자*, *송금인*, *보호자*,"
        "खरीदार, खरीददार, क्रेता, विक्रेता, छात्र, विद्यार्थी, शिक्षक, चिकित्सक, डॉक्टर, चालक, यात्री, अतिथि, सदस्य, किरायेदार, मालिक, लेखक, प्रेषक, भुगतानकर्ता, संपर्क,"
        "المشتري, مشتري, البائع, بائع, الطالب, الطالبة, المعلم, الطبيب, السائق, الراكب, الضيف, المشارك, العضو, المستأجر, المؤجر, المالك, المؤلف, المرسل, المتقدم, الزبون, اسم المشتري, اسم البائع, اسم الطالب, خریدار, فروشنده, مشتری, نام و نام خانوادگی, نام, نام خانوادگی, بیمار, کارمند, دانشجو, گیرنده, فرستنده,"
        "ονομα, επωνυμο, ονοματεπωνυμο, πελατης, πελατισσα, αγοραστης, πωλητης, ασθενης, υπαλληλος, μαθητης, φοιτητης, καθηγητης, γιατρος, οδηγος, επιβατης, συμμετεχων, μελος, ιδιοκτητης, ενοικιαστης, παραληπτης, αποστολεας, συγγραφεας, υποψηφιος, δικαιουχος,"
        "=שם, שם מלא, שם פרטי, שם משפחה, לקוח, שם הלקוח, קונה, מוכר, מטופל, עובד, תלמיד, סטודנט, מורה, רופא, נהג, נוסע, אורח, משתתף, חבר, שוכר, בעלים, נמען, שולח, איש קשר,"
        "*ชื่อ*, *นามสกุล*, *ลูกค้า*, *ผู้ซื้อ*, *ผู้ขาย*, *ผู้ป่วย*, *พนักงาน*, *นักเรียน*, *ผู้รับ*, *ผู้ส่ง*, *ผู้ติดต่อ*,"
        "=नाम, *का नाम, पूरा नाम, उपनाम, कुलनाम, ग्राहक, आवेदक, मरीज, कर्मचारी, खाताधारक, संपर्क व्यक्ति, प्राप्तकर्ता, नाम,"
        "=الاسم, الاسم *, اسم العميل, اسم المستلم, اسم المريض, اسم الموظف, اسم المرسل, اسم العائلة, اللقب, اسم الأب, العميل, المستلم, المريض, الموظف, صاحب الحساب, جهة الاتصال, الاسم الكامل, اسم *"
    )
)


@lru_cache(maxsize=8192)
def local_rule_for(key: str) -> FieldRule | None:
    """Return the rule that speaks about a key with other letters than Latin ones, in words without accents."""
    if _LOCAL_NEVER.search(key) or NEVER.search(key):
        return None
    is_place = _LOCAL_PLACE_OF_BIRTH.search(key) is not None
    rules = (rule for rule in _LOCAL_RULES if not (is_place and rule.type is PiiType.DATE_OF_BIRTH))
    return next((rule for rule in rules if rule.key.search(key)), None)


@lru_cache(maxsize=8192)
def names_people(key: str) -> bool:
    """Return whether the values of a key with other letters than Latin ones are names of people."""
    return _LOCAL_NAME_KEYS.search(key) is not None and not _LOCAL_NEVER.search(key)


_BY_LANGUAGE = (
    # English
    "buyer seller purchaser vendor_contact orderer subscriber pupil trainee apprentice lecturer nurse caregiver carer "
    "relative heir executor trustee borrower lender lessee lessor renter occupant homeowner voter visitor "
    "attendee invitee respondent volunteer backer bidder payee remitter registrant signatory chaperone "
    # German
    "kaufer kaeufer verkaufer verkaeufer besteller auftraggeber auftragnehmer empfanger empfaenger absender rechnungsempfanger "
    "rechnungsempfaenger mieter vermieter schuler schueler student dozent lehrer teilnehmer mitglied spender patient arzt "
    "bearbeiter sachbearbeiter verfasser autor fahrer fahrgast reisender gast bewerber antragsteller bevollmachtigter "
    "eigentumer eigentuemer zahler zahlungspflichtiger glaubiger glaeubiger schuldner erblasser erbe versicherter "
    "versicherungsnehmer beschaftigter beschaeftigter angestellter arbeitnehmer ansprechpartner betreuer vertreter "
    "vorgesetzter bewohner nutzer anwender abonnent interessent lieferant fahrzeughalter kontakt beauftragter "
    "unterzeichner zeuge klager klaeger beklagter mandant pate praktikant azubi trainer spieler erziehungsberechtigter "
    # French
    "acheteur acheteuse vendeur vendeuse client cliente eleve etudiant etudiante professeur enseignant enseignante patient "
    "patiente medecin infirmier infirmiere locataire proprietaire bailleur destinataire expediteur expeditrice emetteur "
    "auteur autrice conducteur conductrice passager passagere voyageur invite invitee participant participante adherent "
    "adherente membre donateur donatrice abonne abonnee salarie salariee employe employee collaborateur collaboratrice "
    "candidat candidate demandeur assure assuree souscripteur heritier heritiere temoin debiteur creancier interlocuteur "
    "utilisateur utilisatrice stagiaire conjoint conjointe parrain signataire payeur "
    # Spanish
    "comprador compradora vendedor vendedora cliente clienta alumno alumna estudiante profesor profesora maestro maestra "
    "paciente medico medica enfermero enfermera inquilino inquilina arrendatario arrendador propietario propietaria "
    "destinatario remitente autor autora conductor conductora pasajero pasajera viajero huesped invitado invitada "
    "participante asistente miembro socio socia donante suscriptor abonado empleado empleada trabajador trabajadora "
    "candidato candidata solicitante asegurado asegurada heredero heredera testigo deudor acreedor pagador usuario_final "
    "firmante apoderado contacto tutor tutora conyuge "
    # Italian
    "acquirente compratore venditore venditrice cliente alunno alunna studente studentessa professore insegnante docente "
    "paziente medico infermiere inquilino affittuario conduttore locatore proprietario proprietaria destinatario mittente "
    "autore autrice autista conducente passeggero viaggiatore ospite invitato partecipante iscritto iscritta socio membro "
    "donatore abbonato dipendente impiegato impiegata lavoratore collaboratore candidato richiedente assicurato erede "
    "testimone debitore creditore pagatore firmatario referente tutore coniuge "
    # Portuguese
    "comprador compradora vendedor vendedora aluno aluna estudante professor professora paciente medico medica enfermeiro "
    "enfermeira inquilino locatario locador proprietario proprietaria destinatario remetente autor autora motorista "
    "passageiro viajante hospede convidado participante membro socio doador assinante funcionario funcionaria empregado "
    "trabalhador colaborador candidato requerente segurado herdeiro testemunha devedor credor pagador contato responsavel "
    "tutor conjuge "
    # Dutch
    "koper verkoper klant leerling student docent leraar patient arts verpleegkundige huurder verhuurder eigenaar ontvanger "
    "afzender auteur bestuurder chauffeur passagier reiziger gast genodigde deelnemer donateur abonnee werknemer "
    "medewerker sollicitant aanvrager verzekerde erfgenaam getuige schuldenaar schuldeiser betaler besteller opdrachtgever "
    "contactpersoon begunstigde gebruiker ondertekenaar voogd "
    # Polish
    "kupujacy nabywca sprzedawca sprzedajacy zamawiajacy zleceniodawca klient klientka uczen uczennica student studentka "
    "nauczyciel nauczycielka pacjent pacjentka lekarz lekarka pielegniarka najemca wynajmujacy wlasciciel wlascicielka "
    "odbiorca nadawca autor autorka kierowca pasazer podrozny gosc uczestnik uczestniczka czlonek darczynca abonent "
    "pracownik pracowniczka kandydat kandydatka wnioskodawca ubezpieczony spadkobierca swiadek dluznik wierzyciel platnik "
    "opiekun uzytkownik malzonek "
    # Turkish
    "alici satici musteri ogrenci ogretmen doktor hemsire kiraci ev_sahibi mal_sahibi gonderen gonderici yazar sofor surucu "
    "yolcu misafir konuk katilimci uye bagisci abone calisan personel aday basvuran sigortali mirasci tanik borclu alacakli "
    "odeyen muvekkil veli yetkili "
    # Czech and Slovak
    "kupujici prodavajici zakaznik zakaznice klient klientka zak student ucitel ucitelka pacient pacientka lekar lekarka "
    "sestra najemce pronajimatel vlastnik majitel majitelka prijemce odesilatel autor autorka ridic cestujici ucastnik "
    "ucastnice clen clenka darce odberatel zamestnanec pracovnik kandidat uchazec zadatel pojisteny dedic svedek dluznik "
    "veritel platce objednatel kupujuci predavajuci zakaznicka ziak ucitelia najomca vlastnicka prijemca odosielatel vodic "
    "cestujuci ucastnik zamestnanec uchadzac ziadatel "
    # Hungarian
    "vasarlo vevo elado ugyfel diak tanulo hallgato tanar beteg orvos apolo berlo berbeado tulajdonos cimzett felado szerzo "
    "sofor utas vendeg resztvevo adomanyozo elofizeto alkalmazott munkavallalo dolgozo jelolt palyazo kerelmezo "
    "biztositott orokos tanu hitelezo befizeto megrendelo kapcsolattarto "
    # Romanian
    "cumparator vanzator elev eleva student studenta profesor profesoara pacient pacienta medic asistenta chirias "
    "proprietar destinatar expeditor autor sofer pasager oaspete participant membru donator abonat angajat angajata "
    "salariat candidat solicitant asigurat mostenitor martor debitor creditor platitor "
    # Swedish, Danish, Norwegian
    "kopare saljare kund elev larare patient lakare hyresgast hyresvard agare mottagare avsandare forfattare forare "
    "passagerare resenar gast deltagare medlem givare prenumerant anstalld medarbetare sokande forsakrad arvinge vittne "
    "kober kjoper saelger selger kunde laerer laege lege lejer leietaker utleier ejer modtager mottaker afsender avsender "
    "forfatter forer sjafor passager passasjer rejsende gaest gjest deltager deltaker abonnent medarbejder ansatt ansat "
    "soker ansoger forsikret arving vidne vitne "
    # Finnish
    "ostaja myyja asiakas oppilas opiskelija opettaja potilas laakari hoitaja vuokralainen vuokranantaja omistaja "
    "vastaanottaja lahettaja kirjoittaja kuljettaja matkustaja vieras osallistuja jasen lahjoittaja tilaaja tyontekija "
    "hakija vakuutettu perillinen todistaja velallinen velkoja maksaja yhteyshenkilo "
    # Croatian, Serbian, Slovene in Latin letters
    "kupac kupovalec prodavac prodavatelj prodajalec klijent musterija ucenik ucenec student nastavnik ucitelj profesor "
    "pacijent lijecnik lekar zdravnik stanar najemnik najmoprimac vlasnik lastnik primatelj primalac prejemnik posiljatelj "
    "posiljalac autor vozac voznik putnik potnik gost sudionik ucesnik udelezenec donator pretplatnik narocnik "
    "zaposlenik zaposleni radnik kandidat podnositelj osiguranik nasljednik svjedok duznik vjerovnik platitelj narucitelj "
    # Vietnamese, Indonesian, Malay
    "khach_hang nguoi_mua nguoi_ban ho_va_ten ho_ten hoc_sinh sinh_vien giao_vien benh_nhan bac_si nguoi_nhan nguoi_gui "
    "nhan_vien tac_gia hanh_khach pembeli penjual pelanggan nama_lengkap nama siswa mahasiswa dosen pasien dokter "
    "penyewa pemilik penerima pengirim penulis sopir penumpang tamu peserta anggota donatur pelanggan karyawan pegawai "
    "pekerja pelamar pemohon tertanggung ahli_waris saksi murid pemandu penghantar"
)
_NAME_BESIDE_ROLE = "name|namen|nachname|vorname|nom|nombre|nome|naam|nazwisko|imie|adi|isim|jmeno|prijmeni|nev|neve|nume|namn|navn|nimi|ime|ten|nama"
_OF_ROLE = "des|der|de|del|de la|de l|du|della|dello|dell|do|da|van|van de|av|af"
_ROLES = "|".join(sorted({word.replace("_", " ") for word in _BY_LANGUAGE.split()}, key=len, reverse=True))
_ROLE_KEY = re.compile(
    rf"\A(?:(?:{_NAME_BESIDE_ROLE}) (?:(?:{_OF_ROLE}) )?)?(?:{_ROLES})(?: ?(?:in|innen|s|es|n|en|e|er|i|y|a|lar|ler))?(?: ?(?:{_NAME_BESIDE_ROLE}))?\Z"
)


@lru_cache(maxsize=8192)
def is_role(key: str) -> bool:
    """Return whether a key, in words, says what somebody is to somebody, in a language of Latin letters."""
    return _ROLE_KEY.search(key) is not None


_NAME_KEYS = phrases(
    "first name*, last name*, given name*, family name*, full name*, sur name*, *surname*, middle name*, maiden name, legal name, real name, display name,"
    "preferred name, birth name, fore name*, *forename*, contact name*, holder name, =f name, =l name, =m name, =fname, =lname, =mname, name first,"
    "name last, name full, name on card, =sn, =cn, =fn, =gn, =given, =family, =last, =first, =middle, your name, my name, =nm, =names, full nm,"
    "first nm, last nm, fst name, lst name, *vorname*, *nachname*, familienname*, zuname, geburtsname, prenom*, nom, nom de famille, nom complet, apellido*,"
    "nombre*, cognome*, nome*, sobrenome*, apelido*, voornaam*, achternaam*, naam, imie*, nazwisko*, fornamn, efternamn, namn, etunimi, sukunimi, nimi,"
    "fornavn, etternavn, efternavn, navn, soyad*, =ad, ad soyad, jmeno, prijmeni, ime, prezime, priimek, keresztnev, vezeteknev, nev, ansprechpartner*,"
    "kunde*, kundenname, mitarbeiter, name des kunden, nume, prenume,"
    "nombre y apellidos, titular*, titulaire*, intestatari*, osoba kontaktowa, contactpersoon, versicherte person, klient*, klant*, =kunde, kundin, isim, =adi, adi soyadi, ad soyad, musteri ad*, soyisim, nome e cognome, nom du client, nom et prenom*, rekeninghouder, kontoinhaber*, imie i nazwisko, nazwisko i imie,"
    "jmeno a prijmeni, meno, priezvisko, meno a priezvisko, imie nazwisko, nume si prenume, teljes nev, ime i prezime, ho va ten, ho ten, nama lengkap, fullt namn, koko nimi, fulde navn,"
    "beneficiari*, beneficiai*, vollstandiger name, voller name, kontaktperson*, destinatai*, destinatari*, ontvanger*, odbiorca, odbiorcy, tam adi, alici, alici adi"
)
_PERSON_WORDS = frozenset(
    "customer client patient holder employee author owner assignee assigned requester requested sender recipient passenger driver manager "
    "contact cardholder payer payee debtor creditor beneficiary insured applicant guest student member attendee participant person "
    "people buyer seller signer signatory spouse father mother parent child next kin subscriber lead agent doctor physician nurse "
    "teacher professor committer candidate claimant tenant landlord donor voter user usr cust emp reporter reviewer approver approved "
    "created updated closed merged opened submitted reported signed prepared creator editor organizer organiser host speaker "
    "interviewer interviewee witness victim suspect defendant plaintiff lawyer attorney judge partner sponsor mentor supervisor boss "
    "colleague friend caller callee account policyholder accountholder traveler traveller emergency referrer consignee shipper receiver "
    "resident winner instructor trainer coach player actor director artist writer salesperson rep representative technician operator "
    "worker staff personnel individual human kunde mitarbeiter inhaber besitzer empfanger absender klant cliente dipendente empleado "
    "funcionario titular profile identity viewer commenter poster from to cc bcc billing shipping delivery handler ceo cto cfo "
    "contractor freelancer".split()
)
_PERSON_KEYS = phrases(
    "=policy holder, =account holder, =card holder, =assigned to, =requested by, =created by, =approved by, =updated by, =submitted by, =reported by,"
    "=signed by, =reviewed by, =closed by, =merged by, =prepared by, =modified by, =performed by, =issued to, =issued by, =sold to, =paid by, =paid to,"
    "=ordered by, =deliver to, =from name, =to name, =bill to, =ship to, =attn, =attention, =signed off by, =co authored by, =next of kin,"
    "=emergency contact, =contact person, =assignee, =assignees, =payer, =payee, =attendee, =attendees, =passenger, =passengers, =author, =authors,"
    "=reporter, =manager, =owner, =beneficiary, =patient, =recipient, =recipients, =sender, =debtor, =creditor, =customer, =client, =employee, =reviewer,"
    "=reviewers, =approver, =requester, =organizer, =organiser, =contact, =lead, =teacher, =student, =doctor, =physician, =guest, =guests, =tenant,"
    "=landlord, =applicant, =candidate, =supervisor, =spouse, =participants, =participant, =members, =committer, =signatory, =insured, =claimant,"
    "=driver, =instructor, =speaker, =person, =mother, =father, =buyer, =seller, =consignee, =traveler, =traveller, =ceo, =full, =display,"
    "=posted by, =written by, =holder, =team lead, =arzt, =arztin, =hausarzt, =medico, =medecin, =project lead, =project manager, =account manager, =sales rep, =agent, =caller, =interviewer, =witness,"
    "=bestellt von, =unterschrieben von, =erstellt von, =commande par, =vendu a, =pedido por, =ordinato da, =besteld door"
)
_ROLES_OF_MACHINES = frozenset(
    "account agent profile tenant host identity operator worker handler actor owner manager client lead".split()
)
_NOT_PEOPLE = frozenset(
    "file host domain table column class event db database image package project repo repository branch app application service "
    "product company org organization organisation team plan item node key var func function method type tag path dir folder bucket "
    "queue topic job task model field variable schema index game brand city country street bank server device container pod cluster "
    "space group role module test report store business trade entity template channel query resource layer metric policy rule label "
    "hotel airline firma unternehmen entreprise empresa azienda bedrijf section category department dept region state county currency "
    "language tool library script action step stage workflow environment env config setting param parameter attribute element "
    "component page form button".split()
)
_NOBODY = re.compile(
    r"[@/\\{}<>=_$:;|\[\]()#*+]|\.(?:com|org|io|py|js|net|de)\b|\A[a-z]+(?:[-.][a-z]+)+\Z|\A[a-z]+[A-Z]"
)
_PARTICLES = frozenset("de van von der den da la del di bin al dos y el le du ibn ter ten zu do das e of st".split())
_BEFORE_NAME = frozenset("pan pani пан пані dr dra prof ing mag sig sr sra mr mrs ms herr frau bay bayan".split())
_AFTER_NAME = frozenset("mba phd md dds dvm cpa msc bsc jr sr ii iii iv bed beng llb llm ba ma".split())
_COMPANY = re.compile(
    r"(?i)\b(?:inc|llc|ltd|gmbh|corp|corporation|company|co|ag|kg|sa|srl|plc|group|holdings?|bank|university|school|hospital|department|"
    r"team|services?|solutions|systems|technologies|foundation|institute|hotel|restaurant|store|shop|bv|oy|pty|sarl|sas|ug|ohg|kgaa)\b"
)
_LONGEST_NAME, _MOST_WORDS = 80, 6


def is_name_key(key: str) -> bool:
    """Return whether a key, in words, names people whatever is around it."""
    return _NAME_KEYS.search(key) is not None if key.isascii() else names_people(key)


def is_company(name: str) -> bool:
    """Return whether a name has a word that only names of companies have."""
    return _COMPANY.search(name) is not None


def is_placeholder(value: str) -> bool:
    """Return whether a value says that there is none."""
    return value.lower() in PLACEHOLDERS


def person(key: str, parent: str, value: str) -> FieldVerdict | None:
    """Judge the value of a key that may name a person."""
    if NEVER.search(key) or not _could_be_name(value):
        return None
    if not key.isascii() and names_people(key):
        return FieldVerdict(PiiType.PERSON, SURE) if _named(value) and not _COMPANY.search(value) else None
    words = set(key.split())
    if words & _NOT_PEOPLE and not words & _PERSON_WORDS & {"account", "policyholder", "lead", "manager"}:
        return None
    if _NAME_KEYS.search(key) or (key.endswith(("name", "names", " nm")) and words & _PERSON_WORDS):
        is_machine = words <= _ROLES_OF_MACHINES | {"name", "names"} and value.islower()
        return FieldVerdict(PiiType.PERSON, SURE) if _named(value) and not is_machine else None
    if _PERSON_KEYS.search(key):
        is_machine = words <= _ROLES_OF_MACHINES and value.islower() and " " not in value
        return (
            FieldVerdict(PiiType.PERSON, 0.8)
            if _named(value) and not is_machine and not _COMPANY.search(value)
            else None
        )
    if is_role(key) and any(word[0].isupper() or _uncased(word[0]) for word in value.split()):
        return FieldVerdict(PiiType.PERSON, 0.8) if not _COMPANY.search(value) else None
    if key.rpartition(" ")[2] in _PERSON_WORDS - _ROLES_OF_MACHINES and looks_like_full_name(value):
        return FieldVerdict(PiiType.PERSON, LIKELY)
    if key == "user" and looks_like_full_name(value):
        return FieldVerdict(PiiType.PERSON, LIKELY)
    if key in {"name", "names"}:
        around = set(parent.split()) | {word.removesuffix("s") for word in parent.split()}
        if around & _NOT_PEOPLE:
            return None
        if around & _PERSON_WORDS and _named(value) and not _COMPANY.search(value):
            return FieldVerdict(PiiType.PERSON, SURE)
        if looks_like_full_name(value):
            return FieldVerdict(PiiType.PERSON, LIKELY)
    return None


def _could_be_name(value: str) -> bool:
    return (
        len(value) <= _LONGEST_NAME
        and not digits(value)
        and letters(value) >= 1
        and len(value.split()) <= _MOST_WORDS
        and value.lower() not in PLACEHOLDERS
        and not _NOBODY.search(value)
    )


def _named(value: str) -> bool:
    """Return whether a value below a key that names people may be a name: most have a capital letter."""
    words = value.split()
    return any(c.isupper() or _uncased(c) for word in words for c in word[:3]) or len(words) in {1, 2}


def _uncased(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()


def looks_like_full_name(value: str) -> bool:
    """Return whether a value alone looks like given and family name: `Ana de Souza`, not `Acme GmbH` or `IT Team`."""
    if not value.isascii() and _uncased(value[0]):
        return looks_like_local_name(value)
    words = value.split()
    while len(words) > 2 and words[0].strip(".").lower() in _BEFORE_NAME:
        words = words[1:]
    while len(words) > 2 and words[-1].replace(".", "").lower() in _AFTER_NAME:
        words = words[:-1]
    return (
        2 <= len(words) <= 5
        and all(word[0].isupper() or word.lower() in _PARTICLES for word in words)
        and (words[0][0].isupper() or words[-1][0].isupper())
        and not any(word.isupper() and len(word.strip(".")) > 2 for word in words)
        and not _COMPANY.search(value)
        and not set(value.lower().split()) & _NOT_PEOPLE
        and all(c.isalpha() or c in " .'’-," for c in value)
    )


_MAX_KEY_WORDS = 8
_MAX_VALUE = 4096
_LOST = re.compile("\ufffd{1,2}")
"""What stands for a letter that cannot be read: two of them where it was two bytes of UTF-8."""
_LOST_MAX = 2
_VOWELS = ("a", "e", "i", "o", "u", "ae", "oe", "ue", "")
_MAY_BE_LOST = (*_VOWELS, "c", "n", "s", "z", "l", "y", "r", "t", "d", "ss")
_EITHER_GENDER = re.compile(r"[*:/_(]-?in(?:nen)?\)?(?=\Z|[\s_-])")
"""What is put behind a word in German that it may be a woman: `Käufer*in`, `Käufer:innen`, `Käufer/-in`, `Käufer(in)`."""
_KEY_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z]+")
KEYS_OF_THINGS = frozenset(
    "price prices unit_price unitprice list_price sku brand qty quantity color colour stock in_stock instock currency weight upc "
    "ean asin isbn manufacturer barcode rating runtime image_url thumbnail cuisine genre capacity voltage material price_cents".split()
)
"""Keys beside a `name` that show that it is not a person's, in lower case."""


def judge(path: Sequence[str], value: str) -> FieldVerdict | None:
    """Return what `value` is, by the key `path[-1]` and the keys around it, or None.

    `value` is without quotes and without space at its ends.
    """
    return KeyJudge(path)(value)


class KeyJudge:
    """Judges values below one path: what its keys say is found out once."""

    def __init__(self, path: Sequence[str]) -> None:
        names = [name for name in path[-3:] if name and not name.isdecimal()]
        key, parent, grandparent = (*(in_words(name) for name in reversed(names)), "", "", "")[:3]
        if key in GENERIC_KEYS and parent:
            # `phones: [{"number": …}]`: the parent names the field.
            key, parent = parent, grandparent
        self._key = key if key.count(" ") < _MAX_KEY_WORDS else ""
        self._parent = parent
        self._rule = (rule_for(key) if key.isascii() else local_rule_for(key)) if self._key else None
        self._is_secret = self._rule is not None and self._rule.type is PiiType.SECRET
        self._may_name = (
            self._rule is not None and self._rule.type is PiiType.ADDRESS and bool(BEGINS_WITH_NAME.search(key))
        )
        self._verdict = None if self._rule is None else FieldVerdict(self._rule.type, SURE)

    def __call__(self, value: str) -> FieldVerdict | None:
        """Return what a value is, or None; it is without quotes and without space at its ends."""
        if not value or len(value) > _MAX_VALUE or not self._key:
            return None
        rule = self._rule
        if rule is not None and rule.fits(value) and not (self._is_secret and _names_secret(rule, self._key, value)):
            if self._may_name and not digits(value) and looks_like_full_name(value):
                return FieldVerdict(PiiType.PERSON, LIKELY)
            return self._verdict
        return person(self._key, self._parent, value)


def is_label(words: str) -> bool:
    """Return whether words, as they stand in a text, are what a field is called: `Posta Kodu`, `PLZ`, `氏名`."""
    key = in_words(words)
    return bool(key) and ((rule_for(key) if key.isascii() else local_rule_for(key)) is not None or is_name_key(key))


def _names_secret(rule: FieldRule, key: str, value: str) -> bool:
    """Return whether a value only says which secret is meant: `keyName: RootKey`, `--secret dbPassword`."""
    if key.endswith((" name", "private key id", "signing key id", "encryption key id")):
        return True
    words = in_words(value)
    return value.isalpha() and value[0].islower() and " " in words and rule.key.search(words) is not None


@lru_cache(maxsize=4096)
def in_words(key: str) -> str:
    """Return a key as lower-case words of plain letters with single spaces: `kundenName` is `kunden name`.

    A key that was read in another encoding than it is written in, `kÃ¤ufer` or `k\ufffdufer`, is what it was.
    """
    said = _EITHER_GENDER.sub("", key[:200])
    if said.isascii():
        return _words_of(said)
    if _LOST.search(said):
        return _with_lost_letters(said)
    return _words_of(_read_anew(said))


def _words_of(said: str) -> str:
    return " ".join(_KEY_WORDS.findall(said if said.isascii() else without_accents(said))).lower()


def _read_anew(said: str) -> str:
    """Return what was UTF-8 and was read as Windows-1252 or Latin-1; anything else as it is."""
    for encoding in ("cp1252", "latin-1"):
        try:
            return said.encode(encoding).decode()
        except UnicodeError:
            continue
    return said


def _with_lost_letters(said: str) -> str:
    """Return words with such letters in place of the lost ones that they are a label, if there are such.

    Where more than one is lost only vowels are tried, and only what people are called: of hostile text each label may
    be another, and to look through all rules takes long.
    """
    lost = len(_LOST.findall(said))
    if lost > _LOST_MAX:
        return _words_of(said)
    for letters in product(_MAY_BE_LOST if lost == 1 else _VOWELS, repeat=lost):
        words = _words_of(_filled(said, letters))
        if is_role(words) or is_name_key(words) or (lost == 1 and rule_for(words) is not None):
            return words
    return _words_of(said)


def _filled(said: str, letters: Sequence[str]) -> str:
    left = iter(letters)
    return _LOST.sub(lambda _found: next(left), said)
