"""Keys of fields that name people, and what names look like: `customer.name`, `assignee`, `nachname`."""

from __future__ import annotations

import re

from ..findings import PiiType
from ..names.local_names import looks_like_local_name
from .local_keys import names_people
from .roles import is_role
from .rules import LIKELY, NEVER, SURE, FieldVerdict, phrases
from .values import PLACEHOLDERS, digits, letters

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
