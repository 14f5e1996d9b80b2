"""Keys of fields that name one type of personal data, in the languages of most European forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ..findings import PiiType
from . import values

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
        values.passphrase,
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
        values.secret,
    ),
    _rule(
        PiiType.SSN,
        "ssn, ssns, *ssn, social security*, social insurance*, sozialversicherung*, securite sociale, numero secu*, nss, =sin, sin number",
        values.number(7, 24),
    ),
    _rule(PiiType.IBAN, "*iban, iban*", values.number(8, 42)),
    _rule(
        PiiType.PASSPORT,
        "*passport*, reisepass*, passeport*, pasaporte*, passaport*, paszport*, pasaport*, passnummer, pass nr, paspoort*, pasaport*",
        values.number(5, 15),
    ),
    _rule(
        PiiType.DRIVING_LICENCE,
        "driver* licen*, driver* lic, drivers licen*, driving licen*, dl, licen[sc]e no, licen[sc]e num*, licen[sc]e nr, licen[sc]e id,"
        "fuhrerschein*, permis de conduire, permis conduire, patente*, rijbewijs*, cnh, prawo jazdy, korkort*",
        values.number(4, 24),
    ),
    _rule(
        PiiType.CARD,
        "cvv, cvv2, cvv 2, cvc, cvc2, cvc 2, =csc, card security*, card verification*, =security code",
        values.code(4),
    ),
    _rule(
        PiiType.CARD,
        "card no, card num*, card nr, *card number, cc, cc no, cc num*, credit card*, creditcard*, debit card*, =pan, card pan, pan number,"
        "=card, payment card, kreditkarte*, karten ?n*, carte bancaire, carte bleue, carte de credit, carte de paiement, numero carte, numero de carte, no de carte, n de carte, tarjeta*, carta di credito, carta di pagamento, numero di carta,"
        "n carta, nr carta, cartao*, kart no, kart num*, kredi kart*, banka kart*, kaart ?n*, credit ?card*, bankpas*, nr karty, numer karty, karta kredyt*, karta plat*, karty",
        values.number(12, 30),
    ),
    _rule(
        PiiType.TAX_ID,
        "tax id*, tax no, tax num*, tax payer*, tax code, tax ref*, tax file*, tin, ein, itin, vat, vat id, vat no, vat num*, gstin, =pan no,"
        "steuer nummer, steuer nr, steuer id*, steuernummer*, steuernr, steuerid*, ust id*, ustid*, codice fiscale, =cf, nif, cif, cpf, cnpj,"
        "rfc, cuit, cuil, rut, nip, abn, siret, siren, partita iva, p iva, btw nummer, btw, utr, numero fiscal*",
        values.number(5, 24),
    ),
    _rule(
        PiiType.NATIONAL_ID,
        "national id*, national num*, national insurance*, citizen id, citizen num*, aadhar*, aadhaar*, nino, =ni no, ni number,"
        "personal number, personal id*, personal code, identity num*, identity no, identity card*, id card*, id doc*, id number, id no,"
        "government id*, gov id, govt id, voter id*, employee id, employee no, employee num*, emp id, emp no, emp num*, staff id, bsn, pesel, dni,"
        "nie, curp, tckn, tc no, tc kimlik*, personnummer, personnr, personalausweis*, ausweis*, cni, fodselsnummer, cpr, cpr nr, hetu, egn, cnp,"
        "rodne cislo, oib, jmbg, emso, nric, badge id, badge no, badge num*, student id, student no, student num*, carta d identita, cedula, documento",
        values.number(5, 30),
    ),
    _rule(
        PiiType.MEDICAL,
        "mrn, medical record*, med rec*, patient id*, patient no, patient num*, member id, member no, member num*, insurance id,"
        "insurance no, insurance num*, insurance policy*, policy no, policy num*, policy nr, health id, health card*, health plan*,"
        "health insurance*, subscriber id, nhs*, medicare*, medicaid*, npi, dea number, dea no, versichertennummer, versicherungsnummer,"
        "versicherungs nr, krankenversicherungs*, kvnr, health record*, chart no, chart num*",
        values.number(4, 30),
    ),
    _rule(
        PiiType.BANK,
        "=bic, =swift, =swift code, =bic code, =bic swift, =swift bic, =bank bic, =bank swift",
        values.code(11),
    ),
    _rule(
        PiiType.BANK,
        "routing*, *routing number, sort code, bank account*, bank acct*, account no, account num*, account nr, *account number, acct no, acct num*,"
        "acct nr, =acct, acc no, acc num*, bsb, blz, bankleitzahl, konto nummer, kontonummer, kontonr, konto nr, =konto, ifsc*, clabe,"
        "rachunek*, nr rachunku, nr konta, hesap no*, hesap num*, banka hesab*,"
        "aba, numero de cuenta, numero cuenta, =cuenta, numero conta, =conta, rib, rekening*, conto corrente, numero conto, numer konta,"
        "beneficiary account, iban or account, debit account, credit account",
        values.number(5, 40),
    ),
    _rule(
        PiiType.DATE_OF_BIRTH,
        "dob, *dob, date of birth, birth date*, birth day*, birth dt, *birthdate, *birthday, bday, born, born on, d o b, *birth, geburts*,"
        "geboren*, date de naissance, date naissance, naissance, fecha de nac*, fecha nac*, nacimiento, data di nascita, data nascita,"
        "nascita, data de nasc*, data nasc*, nascimento, geboorte*, data urodzenia, fodelse*, fodsels dato, fodselsdato, dogum*, datum narozeni,"
        "syntymaaika,"
        "geb am, geb datum, geb dat, ne le, nee le, ne e le, nes le, nacid[oa]*, f nac*, nat[oa] il, nato a il, dt nasc*, nascid[oa]*, data ur, data urodz*, urodzon*, ur dnia, d tarihi, d tar, dogum*, dt nascimento",
        values.date,
    ),
    _rule(
        PiiType.EMAIL,
        "*email*, e ?mail*, *mail, mails, e ?posta*, poczta elektroniczna, adres mail*, correio eletronico, adresse electronique, mail address*, user principal name, upn, correo*, courriel*, posta elettronica",
        values.email,
    ),
    _rule(
        PiiType.PHONE,
        "*phone, *phones, phone*, *mobile, mobile no, mobile num*, mobiles, cell, cells, cell no, cell num*, cellular, tel, tels, tel no, *telephone*,"
        "fax*, *fax, *msisdn, whats app*, sms, sms to, direct line, direct dial, canonical form, contact no, contact num*, handy, handynummer, handynr,"
        "*telefon*, telef, telf, tlf, tlfn, movil*, telefono*, mobiel*, *mobiel, komork*, cep no*, cep num*, gsm*, telemovil, recapito tel*, recapito, celular*, cellulare, portable, telemovel, telefoon*, gsm, gsm no, rufnummer*, mobil, mobilnummer,"
        "mobiltel*, mob, mob no, caller id, caller num*, =caller, =callee, callback no, callback num*, dialed, e 164, e164, extension num*,"
        "puhelin*, komorka, cep tel*, numero de tel*, emergency num*, hotline, landline",
        values.phone,
    ),
    _rule(
        PiiType.ZIP,
        "zip, zip code*, zip 4, *zip, zipcode*, post code*, postcode*, postal code*, plz, postleitzahl, code postal, cp, codigo postal, cap, cep,"
        "c p, cod postal*, codice postale, codice di avviamento*, c a p, kod poczt*, =kod, =pk, =pc, posta kod*, cod p, code postal*, codigo postal*, postcod*,"
        "pin code, pincode, kod pocztowy, post nummer, postnummer, postnr, =postal, psc, posta kodu, irsz",
        values.zip_code,
    ),
    _rule(
        PiiType.ADDRESS,
        "*street, street*, =str, straat*, *adres, adres*, domicile, domicili*, residencia, residenza, ikamet*, logradouro*, endereco*, direccion*, *anschrift,"
        "*address, *addresses, address*, addr, addrs, addr 1, addr 2, addr1, addr2, addr line*, line1, line2,"
        "=adr, house no, house num*, residence, apartment, =apt, unit no, strasse*, *strasse, str nr, anschrift*, adresse*, *adresse, hausnummer, hausnr,"
        "wohnort, wohnsitz, rue, voie, direccion*, domicilio, calle, indirizzo*, =via, endereco*, logradouro, morada, adres*, straat*, *straat, ulica, cadde, sokak, mahalle,"
        "=gata, gatuadress, postadress, osoite*, utca, cim, ship to address, mailing",
        values.address,
    ),
    _rule(PiiType.ADDRESS, "line 1, line 2", values.address_line),
    _rule(
        PiiType.LOCATION,
        "*city, =town, *town, =village, municipality, suburb, hometown, birth place, birthplace, place of birth, =locality, =ort, wohnort, =stadt,"
        "ville*, =commune, ciudad*, localidad, citta*, =comune, cidade*, municipio, naturalidade, =stad, geboorteplaats, miejscowosc*, miejsce zam*, miejsce ur*, =il, =ilce, dogum yeri, city of*, town of*, place of residence, city residence, home city, commune de*, comune di*,"
        " plaats, woonplaats, miasto, postort, sehir, bairro, geburtsort, =poblacion,"
        "lieu de naissance, lugar de nac*, luogo di nascita, local de nasc*, miejsce urodz*, =mesto, =by",
        values.place,
    ),
    _rule(
        PiiType.USERNAME,
        "*username, *user name, =login, user login, =screen name, =handle, =nick, nick name, =uname, login name, login id, =user id, =userid, =user,"
        "=usr, sam account name, logon, logon name, =alias, =twitter, =github, =instagram, =telegram, =skype, =discord, =slack, preferred username,"
        "member name, benutzer*, usuario, utilisateur, identifiant, pseudo, gebruikersnaam, uzytkownik, nazwa uzytkownika, =uid, user handle,"
        "twitter handle, github handle, github user, github login, =actor, =author login, anvandarnamn, kullanici*",
        values.username,
    ),
    _rule(
        PiiType.IP,
        "ip, ips, ip addr*, *ip address, remote addr, client addr, =x forwarded for, x real ip, client ip",
        values.ip,
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
