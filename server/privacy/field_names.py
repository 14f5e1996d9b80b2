"""What the name of a field says about its value: `customer.first_name`, `telefonnummer`, `DB_PASSWORD`.

A key is brought into words (camel, snake, kebab case, accents and separators do not matter) and looked up in a table
of rules; each rule also judges the value, so that `"password": "required"` or `"phone": "mobile"` stay as they are.
The table speaks the languages of most European forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .findings import PiiType

SURE = 0.85
LIKELY = 0.5

_MAX_KEY_WORDS = 8
_MAX_VALUE = 4096
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LETTERS_WITHOUT_MARKS = str.maketrans(
    {"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ı": "i", "æ": "ae", "đ": "d"}
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a value is, and how sure that is."""

    type: PiiType
    score: float


def judge(path: Sequence[str], value: str) -> Verdict | None:
    """Return what `value` is, told by the key `path[-1]` and the keys around it, or None.

    `value` is without quotes and without space at its ends.
    """
    if not value or len(value) > _MAX_VALUE:
        return None
    names = [name for name in path[-3:] if name and not name.isdecimal()]
    if not names:
        return None
    key, parent, grandparent = (*(in_words(name) for name in reversed(names)), "", "")[:3]
    if key in _GENERIC_KEYS and parent:
        # `phones: [{"number": …}]`: the parent names the field.
        key, parent = parent, grandparent
    if not key or key.count(" ") >= _MAX_KEY_WORDS:
        return None
    rule = _rule_for(key)
    if rule is not None and rule.fits(value) and not (rule.type is PiiType.SECRET and _names_secret(rule, key, value)):
        if (
            rule.type is PiiType.ADDRESS
            and _BEGINS_WITH_NAME.search(key)
            and not _digits(value)
            and looks_like_full_name(value)
        ):
            return Verdict(PiiType.PERSON, LIKELY)
        return Verdict(rule.type, SURE)
    return _person(key, parent, value)


def _names_secret(rule: _Rule, key: str, value: str) -> bool:
    """Tell whether a value only says which secret is meant: `keyName: RootKey`, `--secret dbPassword`."""
    if key.endswith((" name", "private key id", "signing key id", "encryption key id")):
        return True
    words = in_words(value)
    return value.isalpha() and value[0].islower() and " " in words and rule.key.search(words) is not None


@lru_cache(maxsize=4096)
def in_words(key: str) -> str:
    """Return a key as lower-case words of plain letters with single spaces: `kundenName` is `kunden name`."""
    plain = key[:200].translate(_LETTERS_WITHOUT_MARKS)
    if not plain.isascii():
        plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    return " ".join(_WORDS.findall(plain)).lower()


# --- what values look like ----------------------------------------------------------------------------------------
# The numbers below are lengths: the shortest and longest forms in use.


def _digits(value: str) -> int:
    return sum(map(str.isdigit, value))


def _letters(value: str) -> int:
    return sum(map(str.isalpha, value))


def _number(least: int, longest: int) -> Callable[[str], bool]:
    """Judge something like a number: at least so many digits, at most so many characters."""
    return lambda value: len(value) <= longest and _digits(value) >= least and "\n" not in value and "://" not in value


def _code(longest: int) -> Callable[[str], bool]:
    """Judge a code of letters and digits, such as a SWIFT code or a card's check digits."""
    return lambda value: (
        len(value) <= longest and value.replace(" ", "").isalnum() and value.lower() not in _PLACEHOLDERS
    )


def _phone(value: str) -> bool:
    return 6 <= _digits(value) <= 20 and len(value) <= 40 and _letters(value) <= 9 and not _DATE.match(value)


def _email(value: str) -> bool:
    return "@" in value.strip("@") and len(value) <= 320 and " " not in value


def _zip(value: str) -> bool:
    return len(value) <= 12 and (_digits(value) >= 3 or (_digits(value) >= 2 and len(value) <= 9))


def _date(value: str) -> bool:
    return len(value) <= 40 and _digits(value) >= 4


def _address(value: str) -> bool:
    return (
        _letters(value) >= 3
        and len(value) <= 200
        and value[0] not in "{[<$%#"
        and "://" not in value
        and "@" not in value
        and not _CALL.search(value)
        and value.lower() not in _PLACEHOLDERS
        and not (_IDENTIFIER.fullmatch(value) and not value[0].isupper())
    )


def _place(value: str) -> bool:
    return _letters(value) >= 2 and len(value) <= 60 and not _digits(value) and value.lower() not in _PLACEHOLDERS


def _username(value: str) -> bool:
    return (
        3 <= len(value) <= 64
        and _USERNAME.fullmatch(value) is not None
        and not value.isdecimal()
        and not _UUID.fullmatch(value)
        and value.lower() not in _SYSTEM_USERS
        and value.lower() not in _PLACEHOLDERS
    )


def _secret(value: str) -> bool:
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and not any(map(str.isspace, value))


def _passphrase(value: str) -> bool:
    return len(value) >= 4 and not _NO_SECRET.fullmatch(value[:200]) and value.count(" ") <= 24


def _ip(value: str) -> bool:
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
_PLACEHOLDERS = frozenset(
    "true false null none nil string str text varchar integer int number unknown undefined n/a na admin root system "
    "anonymous user username name default email phone address required optional yes no on off test example bot tbd "
    "object array boolean private public internal external".split()
)
_SYSTEM_USERS = frozenset(
    "root admin administrator user users app postgres mysql ubuntu debian ec2-user system bot none null guest test "
    "default service nobody daemon www-data git jenkins ci deploy runner sa redis nginx apache node oracle anonymous "
    "me self you __token__ oauth2".split()
)
_ROLES_OF_MACHINES = frozenset(
    "account agent profile tenant host identity operator worker handler actor owner manager client lead".split()
)

# --- keys that name one type --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    type: PiiType
    key: re.Pattern[str]
    fits: Callable[[str], bool]


def _phrases(text: str) -> re.Pattern[str]:
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


def _rule(kind: PiiType, keys: str, fits: Callable[[str], bool]) -> _Rule:
    return _Rule(kind, _phrases(keys), fits)


# Keys that never name something personal, whatever they contain: `token_count`, `is_email`, `password_policy`.
_NEVER = re.compile(
    r"\b(?:count|limit|type|kind|expires|expiry|expiration|ttl|length|max|min|usage|policy|bucket|hint|reset|enabled|disabled|"
    r"verified|valid|status|format|version|size|rate|total|used|index|path|file|dir|uri|url|link|href|required|regex|pattern|"
    r"field|column|label|algorithm|class|method|schema|placeholder|at|budget|timeout|prefix|suffix|source|tokens)\Z"
    r"|\A(?:is|has|max|min|num|total|count|n|show|hide|allow|use|enable|disable|require)\b"
)
_RULES: tuple[_Rule, ...] = (
    _rule(
        PiiType.SECRET,
        "pass phrase, pass code, mnemonic, seed phrase, recovery phrase, recovery code*, recovery key*, unseal key*, root token, backup code*",
        _passphrase,
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
        _secret,
    ),
    _rule(
        PiiType.SSN,
        "ssn, ssns, *ssn, social security*, social insurance*, sozialversicherung*, securite sociale, numero secu*, nss, =sin, sin number",
        _number(7, 24),
    ),
    _rule(PiiType.IBAN, "*iban, iban*", _number(8, 42)),
    _rule(
        PiiType.PASSPORT,
        "*passport*, reisepass*, passeport*, pasaporte*, passaport*, paszport*, passnummer, pass nr, paspoort*, pasaport*",
        _number(5, 15),
    ),
    _rule(
        PiiType.DRIVING_LICENCE,
        "driver* licen*, driver* lic, drivers licen*, driving licen*, dl, licen[sc]e no, licen[sc]e num*, licen[sc]e nr, licen[sc]e id,"
        "fuhrerschein*, permis de conduire, permis conduire, patente*, rijbewijs*, cnh, prawo jazdy, korkort*",
        _number(4, 24),
    ),
    _rule(
        PiiType.CARD,
        "cvv, cvv2, cvv 2, cvc, cvc2, cvc 2, =csc, card security*, card verification*, =security code",
        _code(4),
    ),
    _rule(
        PiiType.CARD,
        "card no, card num*, card nr, *card number, cc, cc no, cc num*, credit card*, creditcard*, debit card*, =pan, card pan, pan number,"
        "=card, payment card, kreditkarte*, kartennummer, carte bancaire, carte bleue, numero carte, tarjeta*, carta di credito, cartao*",
        _number(12, 30),
    ),
    _rule(
        PiiType.TAX_ID,
        "tax id*, tax no, tax num*, tax payer*, tax code, tax ref*, tax file*, tin, ein, itin, vat, vat id, vat no, vat num*, gstin, =pan no,"
        "steuer nummer, steuer nr, steuer id*, steuernummer*, steuernr, steuerid*, ust id*, ustid*, codice fiscale, =cf, nif, cif, cpf, cnpj,"
        "rfc, cuit, cuil, rut, nip, abn, siret, siren, partita iva, p iva, btw nummer, btw, utr, numero fiscal*",
        _number(5, 24),
    ),
    _rule(
        PiiType.NATIONAL_ID,
        "national id*, national num*, national insurance*, citizen id, citizen num*, aadhar*, aadhaar*, nino, =ni no, ni number,"
        "personal number, personal id*, personal code, identity num*, identity no, identity card*, id card*, id doc*, id number, id no,"
        "government id*, gov id, govt id, voter id*, employee id, employee no, employee num*, emp id, emp no, emp num*, staff id, bsn, pesel, dni,"
        "nie, curp, tckn, tc no, tc kimlik*, personnummer, personnr, personalausweis*, ausweis*, cni, fodselsnummer, cpr, cpr nr, hetu, egn, cnp,"
        "rodne cislo, oib, jmbg, emso, nric, badge id, badge no, badge num*, student id, student no, student num*, carta d identita, cedula, documento",
        _number(5, 30),
    ),
    _rule(
        PiiType.MEDICAL,
        "mrn, medical record*, med rec*, patient id*, patient no, patient num*, member id, member no, member num*, insurance id,"
        "insurance no, insurance num*, insurance policy*, policy no, policy num*, policy nr, health id, health card*, health plan*,"
        "health insurance*, subscriber id, nhs*, medicare*, medicaid*, npi, dea number, dea no, versichertennummer, versicherungsnummer,"
        "versicherungs nr, krankenversicherungs*, kvnr, health record*, chart no, chart num*",
        _number(4, 30),
    ),
    _rule(
        PiiType.BANK, "=bic, =swift, =swift code, =bic code, =bic swift, =swift bic, =bank bic, =bank swift", _code(11)
    ),
    _rule(
        PiiType.BANK,
        "routing*, *routing number, sort code, bank account*, bank acct*, account no, account num*, account nr, *account number, acct no, acct num*,"
        "acct nr, =acct, acc no, acc num*, bsb, blz, bankleitzahl, konto nummer, kontonummer, kontonr, konto nr, =konto, ifsc*, clabe,"
        "aba, numero de cuenta, numero cuenta, =cuenta, numero conta, =conta, rib, rekening*, conto corrente, numero conto, numer konta,"
        "beneficiary account, iban or account, debit account, credit account",
        _number(5, 40),
    ),
    _rule(
        PiiType.DATE_OF_BIRTH,
        "dob, *dob, date of birth, birth date*, birth day*, birth dt, *birthdate, *birthday, bday, born, born on, d o b, *birth, geburts*,"
        "geboren*, date de naissance, date naissance, naissance, fecha de nac*, fecha nac*, nacimiento, data di nascita, data nascita,"
        "nascita, data de nasc*, data nasc*, nascimento, geboorte*, data urodzenia, fodelse*, fodsels dato, fodselsdato, dogum*, datum narozeni,"
        "syntymaaika",
        _date,
    ),
    _rule(
        PiiType.EMAIL,
        "*email*, e mail*, *mail, mails, mail address*, user principal name, upn, correo*, courriel*, posta elettronica",
        _email,
    ),
    _rule(
        PiiType.PHONE,
        "*phone, *phones, phone*, *mobile, mobile no, mobile num*, mobiles, cell, cells, cell no, cell num*, cellular, tel, tels, tel no, *telephone*,"
        "fax*, *fax, *msisdn, whats app*, sms, sms to, direct line, direct dial, canonical form, contact no, contact num*, handy, handynummer, handynr,"
        "*telefon*, telef, telf, tlf, tlfn, movil, celular, cellulare, portable, telemovel, telefoon*, gsm, gsm no, rufnummer*, mobil, mobilnummer,"
        "mobiltel*, mob, mob no, caller id, caller num*, =caller, =callee, callback no, callback num*, dialed, e 164, e164, extension num*,"
        "puhelin*, komorka, cep tel*, numero de tel*, emergency num*, hotline, landline",
        _phone,
    ),
    _rule(
        PiiType.ZIP,
        "zip, zip code*, zip 4, *zip, zipcode*, post code*, postcode*, postal code*, plz, postleitzahl, code postal, cp, codigo postal, cap, cep,"
        "pin code, pincode, kod pocztowy, post nummer, postnummer, postnr, =postal, psc, posta kodu, irsz",
        _zip,
    ),
    _rule(
        PiiType.ADDRESS,
        "*street, street*, =str, *address, *addresses, address*, addr, addrs, addr 1, addr 2, addr1, addr2, addr line*, line 1, line 2, line1, line2,"
        "=adr, house no, house num*, residence, apartment, =apt, unit no, strasse*, *strasse, str nr, anschrift*, adresse*, *adresse, hausnummer, hausnr,"
        "wohnort, wohnsitz, rue, voie, direccion*, domicilio, calle, indirizzo*, =via, endereco*, logradouro, morada, adres*, straat*, *straat, ulica,"
        "=gata, gatuadress, postadress, osoite*, utca, cim, ship to address, mailing",
        _address,
    ),
    _rule(
        PiiType.LOCATION,
        "*city, =town, *town, =village, municipality, suburb, hometown, birth place, birthplace, place of birth, =locality, =ort, wohnort, =stadt,"
        "=ville, =commune, =ciudad, localidad, =citta, =comune, =cidade, plaats, woonplaats, miasto, postort, sehir, bairro, geburtsort, =poblacion,"
        "lieu de naissance, lugar de nacimiento, luogo di nascita, =mesto, =by",
        _place,
    ),
    _rule(
        PiiType.USERNAME,
        "*username, *user name, =login, user login, =screen name, =handle, =nick, nick name, =uname, login name, login id, =user id, =userid, =user,"
        "=usr, sam account name, logon, logon name, =alias, =twitter, =github, =instagram, =telegram, =skype, =discord, =slack, preferred username,"
        "member name, benutzer*, usuario, utilisateur, identifiant, pseudo, gebruikersnaam, uzytkownik, nazwa uzytkownika, =uid, user handle,"
        "twitter handle, github handle, github user, github login, =actor, =author login, anvandarnamn, kullanici*",
        _username,
    ),
    _rule(
        PiiType.IP,
        "ip, ips, ip addr*, *ip address, remote addr, client addr, =x forwarded for, x real ip, client ip",
        _ip,
    ),
)
# An address that is not a person's: what networks and computers call so.
_NO_POSTAL_ADDRESS = re.compile(
    r"\b(?:e ?mail|mac|ip|ips|url|wallet|web|memory|bind|listen|remote|base|host|server|net|network|peer|node|btc|eth|contract|"
    r"virtual|physical|hw|from|to|return|reply)\b"
)
# `Billing address: Jane Doe`, with the street on the next line.
_BEGINS_WITH_NAME = re.compile(r"\b(?:billing|shipping|delivery|mailing|postal)\b")
_GENERIC_KEYS = frozenset(
    (
        "value",
        "values",
        "val",
        "text",
        "content",
        "number",
        "data",
        "v",
        "raw",
        "formatted",
        "primary",
        "canonical",
        "national",
        "international",
    )
)


@lru_cache(maxsize=8192)
def _rule_for(key: str) -> _Rule | None:
    """Return the rule that speaks about a key; remembered, since payloads repeat their keys."""
    if _NEVER.search(key):
        return None
    for rule in _RULES:
        if rule.key.search(key):
            if rule.type is PiiType.ADDRESS and _NO_POSTAL_ADDRESS.search(key):
                continue
            return rule
    return None


KEYS_OF_THINGS = frozenset(
    "price prices unit_price unitprice list_price sku brand qty quantity color colour stock in_stock instock currency weight upc "
    "ean asin isbn manufacturer barcode rating runtime image_url thumbnail cuisine genre capacity voltage material price_cents".split()
)
"""Keys beside a `name` that tell that it is no person's, in lower case."""

# --- keys that name people ----------------------------------------------------------------------------------------

_NAME_KEYS = _phrases(
    "first name*, last name*, given name*, family name*, full name*, sur name*, *surname*, middle name*, maiden name, legal name, real name, display name,"
    "preferred name, birth name, fore name*, *forename*, contact name*, holder name, =f name, =l name, =m name, =fname, =lname, =mname, name first,"
    "name last, name full, name on card, =sn, =cn, =fn, =gn, =given, =family, =last, =first, =middle, your name, my name, =nm, =names, full nm,"
    "first nm, last nm, fst name, lst name, *vorname*, *nachname*, familienname*, zuname, geburtsname, prenom*, nom, nom de famille, nom complet, apellido*,"
    "nombre*, cognome*, nome*, sobrenome*, apelido*, voornaam*, achternaam*, naam, imie*, nazwisko*, fornamn, efternamn, namn, etunimi, sukunimi, nimi,"
    "fornavn, etternavn, efternavn, navn, soyad*, =ad, ad soyad, jmeno, prijmeni, ime, prezime, priimek, keresztnev, vezeteknev, nev, ansprechpartner*,"
    "kunde*, kundenname, mitarbeiter, name des kunden, nume, prenume"
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
_PERSON_KEYS = _phrases(
    "=policy holder, =account holder, =card holder, =assigned to, =requested by, =created by, =approved by, =updated by, =submitted by, =reported by,"
    "=signed by, =reviewed by, =closed by, =merged by, =prepared by, =modified by, =performed by, =issued to, =issued by, =sold to, =paid by, =paid to,"
    "=ordered by, =deliver to, =from name, =to name, =bill to, =ship to, =attn, =attention, =signed off by, =co authored by, =next of kin,"
    "=emergency contact, =contact person, =assignee, =assignees, =payer, =payee, =attendee, =attendees, =passenger, =passengers, =author, =authors,"
    "=reporter, =manager, =owner, =beneficiary, =patient, =recipient, =recipients, =sender, =debtor, =creditor, =customer, =client, =employee, =reviewer,"
    "=reviewers, =approver, =requester, =organizer, =organiser, =contact, =lead, =teacher, =student, =doctor, =physician, =guest, =guests, =tenant,"
    "=landlord, =applicant, =candidate, =supervisor, =spouse, =participants, =participant, =members, =committer, =signatory, =insured, =claimant,"
    "=driver, =instructor, =speaker, =person, =mother, =father, =buyer, =seller, =consignee, =traveler, =traveller, =ceo, =full, =display,"
    "=posted by, =written by, =holder, =team lead, =arzt, =arztin, =hausarzt, =medico, =medecin, =project lead, =project manager, =account manager, =sales rep, =agent, =caller, =interviewer, =witness"
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
_COMPANY = re.compile(
    r"(?i)\b(?:inc|llc|ltd|gmbh|corp|corporation|company|co|ag|kg|sa|srl|plc|group|holdings?|bank|university|school|hospital|department|"
    r"team|services?|solutions|systems|technologies|foundation|institute|hotel|restaurant|store|shop|bv|oy|pty|sarl|sas|ug|ohg|kgaa)\b"
)
_LONGEST_NAME, _MOST_WORDS = 80, 6


def _person(key: str, parent: str, value: str) -> Verdict | None:
    """Judge the value of a key that may name a person."""
    if _NEVER.search(key) or not _could_be_name(value):
        return None
    words = set(key.split())
    if words & _NOT_PEOPLE and not words & _PERSON_WORDS & {"account", "policyholder", "lead", "manager"}:
        return None
    if _NAME_KEYS.search(key) or (key.endswith(("name", "names", " nm")) and words & _PERSON_WORDS):
        is_machine = words <= _ROLES_OF_MACHINES | {"name", "names"} and value.islower()
        return Verdict(PiiType.PERSON, SURE) if _named(value) and not is_machine else None
    if _PERSON_KEYS.search(key):
        is_machine = words <= _ROLES_OF_MACHINES and value.islower() and " " not in value
        return Verdict(PiiType.PERSON, 0.8) if _named(value) and not is_machine and not _COMPANY.search(value) else None
    if key.rpartition(" ")[2] in _PERSON_WORDS - _ROLES_OF_MACHINES and looks_like_full_name(value):
        return Verdict(PiiType.PERSON, LIKELY)
    if key == "user" and looks_like_full_name(value):
        return Verdict(PiiType.PERSON, LIKELY)
    if key in {"name", "names"}:
        around = set(parent.split()) | {word.removesuffix("s") for word in parent.split()}
        if around & _NOT_PEOPLE:
            return None
        if around & _PERSON_WORDS and _named(value) and not _COMPANY.search(value):
            return Verdict(PiiType.PERSON, SURE)
        if looks_like_full_name(value):
            return Verdict(PiiType.PERSON, LIKELY)
    return None


def _could_be_name(value: str) -> bool:
    return (
        len(value) <= _LONGEST_NAME
        and not _digits(value)
        and _letters(value) >= 1
        and len(value.split()) <= _MOST_WORDS
        and value.lower() not in _PLACEHOLDERS
        and not _NOBODY.search(value)
    )


def _named(value: str) -> bool:
    """Tell whether a value below a key that names people may be a name: most have a capital letter."""
    words = value.split()
    return any(c.isupper() or _uncased(c) for word in words for c in word[:3]) or len(words) in {1, 2}


def _uncased(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()


def looks_like_full_name(value: str) -> bool:
    """Tell whether a value alone looks like given and family name: `Ana de Souza`, not `Acme GmbH` or `IT Team`."""
    words = value.split()
    return (
        2 <= len(words) <= 5
        and all(word[0].isupper() or word.lower() in _PARTICLES for word in words)
        and words[0][0].isupper()
        and not any(word.isupper() and len(word.strip(".")) > 2 for word in words)
        and not _COMPANY.search(value)
        and not set(value.lower().split()) & _NOT_PEOPLE
        and all(c.isalpha() or c in " .'’-," for c in value)
    )
