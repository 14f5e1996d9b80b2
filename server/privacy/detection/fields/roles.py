"""What headings call people by what they are to somebody: `käufer`, `acheteuse`, `nabywca`, `kupující`, `khách hàng`.

The words are plain letters as `in_words` gives them, of the languages that are written in Latin letters; those of other
scripts are in `local_keys`. A role may be followed by the word for a name, or preceded by it: `Name des Käufers`.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
_NAME = "name|namen|nachname|vorname|nom|nombre|nome|naam|nazwisko|imie|adi|isim|jmeno|prijmeni|nev|neve|nume|namn|navn|nimi|ime|ten|nama"
_OF = "des|der|de|del|de la|de l|du|della|dello|dell|do|da|van|van de|av|af"
_ROLES = "|".join(sorted({word.replace("_", " ") for word in _BY_LANGUAGE.split()}, key=len, reverse=True))
_KEY = re.compile(
    rf"\A(?:(?:{_NAME}) (?:(?:{_OF}) )?)?(?:{_ROLES})(?: ?(?:in|innen|s|es|n|en|e|er|i|y|a|lar|ler))?(?: ?(?:{_NAME}))?\Z"
)


@lru_cache(maxsize=8192)
def is_role(key: str) -> bool:
    """Return whether a key, in words, says what somebody is to somebody, in a language of Latin letters."""
    return _KEY.search(key) is not None
