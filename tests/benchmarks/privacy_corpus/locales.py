"""What the documents of each locale are made of: labels of fields, sentences about people, sentences about nobody.

A line `kind: label | label | …` names fields, one with `>` is a sentence about somebody, one with `-` is about nobody.
Of labels and sentences the first, third … are the `tuned` set, and the second, fourth … the `held-out` set: recognizers
may be made while looking at the first alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KINDS = ("person", "address", "city", "dob", "phone", "email", "iban", "card", "zip")


@dataclass(frozen=True)
class Locale:
    """One locale: its name, Faker's name for it, its country, how dates are written, and what its documents say."""

    name: str
    faker: str
    region: str
    dates: tuple[str, ...]
    months: tuple[str, ...]
    labels: dict[str, list[str]] = field(default_factory=dict)
    about_people: list[str] = field(default_factory=list)
    about_nobody: list[str] = field(default_factory=list)


_EN = """
person: Name | Full name | Customer name | Contact person
address: Address | Street address | Home address | Delivery address
city: City | Town | City of residence | Place of birth
dob: Date of birth | Birth date | DOB | Born
phone: Phone | Telephone | Mobile number | Contact number
email: Email | E-mail | Email address | Mail
iban: IBAN | Account (IBAN) | IBAN number | Bank account IBAN
card: Card number | Credit card | Card no. | Payment card
zip: Postcode | ZIP code | Zip | Postal code
> Our customer {person} moved to {city} last spring and can be reached at {phone}.
> Yesterday {person} called from {phone} and asked us to send the parcel to {address}.
> {person}, born on {dob}, lives at {address}.
> Please change the date of birth of {person} to {dob}.
> The refund for {person} goes to {iban}; we confirmed it by mail to {email}.
> We charged the card {card} of {person} twice and apologised at {email}.
> I met {person} in {city}, where we signed the lease together.
> The driver picked up {person} in {city} and brought the luggage to {address}.
- The next release of the billing service will be deployed on Tuesday at 14:30.
- Please check whether the order of 25 chairs has left the warehouse in time.
- The meeting about the budget for 2026 was moved to the large conference room.
- Every invoice above 1,500.00 has to be approved by two managers.
"""
_DE = """
person: Name | Vollständiger Name | Kunde | Versicherte Person
address: Adresse | Anschrift | Wohnadresse | Lieferanschrift
city: Ort | Stadt | Wohnort | Geburtsort
dob: Geburtsdatum | Geboren am | geb. am | Geburtstag
phone: Telefon | Telefonnummer | Mobil | Handynummer
email: E-Mail | E-Mail-Adresse | Mail | Mailadresse
iban: IBAN | Kontonummer (IBAN) | Bankverbindung IBAN | IBAN-Nummer
card: Kartennummer | Kreditkarte | Kreditkartennummer | Karten-Nr.
zip: PLZ | Postleitzahl | PLZ Wohnort | Plz
> Unsere Kundin {person} ist im Frühjahr nach {city} gezogen und unter {phone} erreichbar.
> Gestern hat {person} von {phone} aus angerufen und das Paket an die {address} bestellt.
> {person}, geboren am {dob}, wohnt in {city}.
> Bitte ändern Sie das Geburtsdatum von {person} auf den {dob}.
> Die Erstattung für Frau {person} geht auf das Konto {iban}, bestätigt an {email}.
> Herr {person} zahlte mit der Karte {card} und bat um eine Rechnung an {email}.
> Die Lieferung für {person} geht an {address}.
> Wir trafen {person} in {city} und unterschrieben dort den Mietvertrag.
- Die nächste Version des Abrechnungsdienstes wird am Dienstag um 14:30 Uhr ausgerollt.
- Bitte prüfen Sie, ob die Bestellung über 25 Stühle das Lager rechtzeitig verlassen hat.
- Die Besprechung zum Haushalt 2026 wurde in den großen Saal verlegt.
- Jede Rechnung über 1.500,00 Euro muss von zwei Führungskräften freigegeben werden.
"""
_FR = """
person: Nom | Nom complet | Nom du client | Titulaire
address: Adresse | Adresse postale | Adresse de livraison | Domicile
city: Ville | Commune | Ville de résidence | Lieu de naissance
dob: Date de naissance | Né(e) le | Née le | Naissance
phone: Téléphone | Numéro de téléphone | Portable | Tél. mobile
email: E-mail | Courriel | Adresse e-mail | Adresse électronique
iban: IBAN | Compte IBAN | Numéro IBAN | RIB/IBAN
card: Numéro de carte | Carte bancaire | N° de carte | Carte de crédit
zip: Code postal | CP | Code postal (domicile) | Code Postal
> Notre cliente {person} a déménagé à {city} au printemps et répond au {phone}.
> Hier {person} a appelé depuis le {phone} et fait livrer le colis au {address}.
> {person}, né le {dob}, habite à {city}.
> Merci de corriger la date de naissance de {person} : {dob}.
> Le remboursement de Mme {person} part sur le compte {iban}, confirmé à {email}.
> M. {person} a payé avec la carte {card} et veut la facture à {email}.
> La livraison pour {person} doit arriver au {address}.
> Nous avons rencontré {person} à {city} pour signer le bail.
- La prochaine version du service de facturation sera déployée mardi à 14 h 30.
- Merci de vérifier si la commande de 25 chaises a quitté l'entrepôt à temps.
- La réunion sur le budget 2026 a été déplacée dans la grande salle.
- Toute facture de plus de 1 500,00 euros doit être approuvée par deux responsables.
"""
_ES = """
person: Nombre | Nombre completo | Nombre y apellidos | Titular
address: Dirección | Domicilio | Dirección postal | Dirección de entrega
city: Ciudad | Localidad | Ciudad de residencia | Lugar de nacimiento
dob: Fecha de nacimiento | Nacido el | Nacida el | F. nacimiento
phone: Teléfono | Número de teléfono | Móvil | Teléfono móvil
email: Correo electrónico | Email | Correo | Dirección de correo
iban: IBAN | Cuenta IBAN | Número de IBAN | Cuenta bancaria (IBAN)
card: Número de tarjeta | Tarjeta | Tarjeta de crédito | N.º de tarjeta
zip: Código postal | CP | C.P. | Cód. postal
> Nuestra clienta {person} se mudó a {city} en primavera y atiende en el {phone}.
> Ayer {person} llamó desde el {phone} y pidió el envío a {address}.
> {person}, nacido el {dob}, vive en {city}.
> Por favor, corrija la fecha de nacimiento de {person}: {dob}.
> El reembolso de la señora {person} va a la cuenta {iban}, confirmado a {email}.
> El señor {person} pagó con la tarjeta {card} y quiere la factura en {email}.
> El pedido de {person} debe llegar a {address}.
> Conocimos a {person} en {city} para firmar el contrato.
- La próxima versión del servicio de facturación se publicará el martes a las 14:30.
- Compruebe si el pedido de 25 sillas ha salido a tiempo del almacén.
- La reunión sobre el presupuesto de 2026 se trasladó a la sala grande.
- Toda factura superior a 1.500,00 euros debe ser aprobada por dos responsables.
"""
_IT = """
person: Nome | Nome completo | Nome e cognome | Intestatario
address: Indirizzo | Residenza | Indirizzo di residenza | Indirizzo di consegna
city: Città | Comune | Città di residenza | Luogo di nascita
dob: Data di nascita | Nato il | Nata il | Nascita
phone: Telefono | Numero di telefono | Cellulare | Recapito telefonico
email: E-mail | Posta elettronica | Indirizzo e-mail | Email
iban: IBAN | Conto IBAN | Codice IBAN | Coordinate IBAN
card: Numero di carta | Carta di credito | N. carta | Numero carta
zip: CAP | Codice postale | Codice di avviamento postale | C.A.P.
> La nostra cliente {person} si è trasferita a {city} in primavera e risponde al {phone}.
> Ieri {person} ha chiamato dal {phone} e vuole il pacco in {address}.
> {person}, nato il {dob}, vive a {city}.
> Correggere la data di nascita di {person}: {dob}.
> Il rimborso della signora {person} va sul conto {iban}, confermato a {email}.
> Il signor {person} ha pagato con la carta {card} e vuole la fattura a {email}.
> L'ordine di {person} va consegnato in {address}.
> Abbiamo incontrato {person} a {city} per firmare il contratto.
- La prossima versione del servizio di fatturazione sarà pubblicata martedì alle 14:30.
- Verificare se l'ordine di 25 sedie ha lasciato il magazzino in tempo.
- La riunione sul bilancio 2026 è stata spostata nella sala grande.
- Ogni fattura oltre 1.500,00 euro va approvata da due responsabili.
"""
_NL = """
person: Naam | Volledige naam | Klant | Contactpersoon
address: Adres | Straat en huisnummer | Woonadres | Afleveradres
city: Plaats | Woonplaats | Stad | Geboorteplaats
dob: Geboortedatum | Geboren op | Geb. datum | Geboren
phone: Telefoon | Telefoonnummer | Mobiel | Mobiel nummer
email: E-mail | E-mailadres | Mailadres | Email
iban: IBAN | Rekeningnummer (IBAN) | IBAN-nummer | Bankrekening
card: Kaartnummer | Creditcard | Creditcardnummer | Kaart nr.
zip: Postcode | Postcode woonadres | PC | Post code
> Onze klant {person} is in het voorjaar naar {city} verhuisd en is bereikbaar op {phone}.
> Gisteren belde {person} vanaf {phone} en wilde het pakket op {address}.
> {person}, geboren op {dob}, woont in {city}.
> Wijzig de geboortedatum van {person} in {dob}.
> De terugbetaling voor mevrouw {person} gaat naar rekening {iban}, bevestigd aan {email}.
> De heer {person} betaalde met kaart {card} en wil de factuur op {email}.
> De bestelling van {person} moet naar {address}.
> Wij ontmoetten {person} in {city} om het huurcontract te tekenen.
- De volgende versie van de facturatiedienst komt dinsdag om 14:30 uur uit.
- Controleer of de bestelling van 25 stoelen het magazijn op tijd heeft verlaten.
- De vergadering over de begroting van 2026 is verplaatst naar de grote zaal.
- Elke factuur boven 1.500,00 euro moet door twee leidinggevenden worden goedgekeurd.
"""
_PL = """
person: Imię i nazwisko | Nazwisko i imię | Klient | Osoba kontaktowa
address: Adres | Adres zamieszkania | Ulica | Adres dostawy
city: Miasto | Miejscowość | Miejsce zamieszkania | Miejsce urodzenia
dob: Data urodzenia | Urodzony | Data ur. | Urodzona dnia
phone: Telefon | Numer telefonu | Tel. komórkowy | Komórka
email: E-mail | Adres e-mail | Poczta elektroniczna | Mail
iban: IBAN | Numer konta | Rachunek bankowy | Nr rachunku
card: Numer karty | Karta płatnicza | Nr karty | Karta kredytowa
zip: Kod pocztowy | Kod | Kod poczt. | Kod pocztowy adresata
> Nasza klientka {person} przeprowadziła się wiosną do miejscowości {city}, telefon {phone}.
> Wczoraj {person} dzwonił z numeru {phone} i zamówił paczkę na adres {address}.
> {person}, urodzony {dob}, mieszka w mieście {city}.
> Proszę poprawić datę urodzenia: {person}, {dob}.
> Zwrot dla pani {person} trafi na konto {iban}, potwierdzenie na {email}.
> Pan {person} zapłacił kartą {card} i prosi o fakturę na {email}.
> Zamówienie dla: {person}, {address}.
> Umowę podpisała {person} w mieście {city}.
- Następna wersja usługi rozliczeniowej zostanie wdrożona we wtorek o 14:30.
- Proszę sprawdzić, czy zamówienie na 25 krzeseł opuściło magazyn na czas.
- Spotkanie w sprawie budżetu na 2026 rok przeniesiono do dużej sali.
- Każdą fakturę powyżej 1500,00 zł musi zatwierdzić dwóch kierowników.
"""
_JA = """
person: 氏名 | お名前 | 名前 | 契約者名
address: 住所 | ご住所 | 現住所 | お届け先住所
city: 市区町村 | 都市 | 出身地 | 居住地
dob: 生年月日 | 誕生日 | 出生日 | お誕生日
phone: 電話番号 | 電話 | 携帯電話 | 連絡先電話番号
email: メールアドレス | メール | Eメール | 電子メール
iban: IBAN | IBANコード | 口座番号(IBAN) | 国際口座番号
card: カード番号 | クレジットカード | クレジットカード番号 | カードNo
zip: 郵便番号 | 〒 | 郵便 | 郵便番号(自宅)
> 先日、{person}さんは{city}に引っ越し、電話番号は{phone}です。
> 昨日{person}様から{phone}でお電話があり、荷物を{address}へ送るよう依頼されました。
> {person}さん({dob}生まれ)は{address}に住んでいます。
> {person}様の生年月日を{dob}に訂正してください。
> {person}様への返金は{iban}に振り込み、{email}に連絡しました。
> お客様の{person}氏はカード{card}で支払い、請求書を{email}へ希望しています。
> 担当の{person}が{city}の店舗で対応しました。
> {person}さんと{city}で賃貸契約を結びました。
- 請求サービスの次のバージョンは火曜日の14時30分に公開されます。
- 椅子25脚の注文が倉庫を出たかどうか確認してください。
- 2026年度の予算会議は大会議室に変更されました。
- 1,500円を超える請求書は二人の管理者の承認が必要です。
"""
_PT = """
person: Nome | Nome completo | Nome do cliente | Titular da conta
address: Endereço | Logradouro | Endereço residencial | Endereço de entrega
city: Cidade | Município | Cidade de residência | Naturalidade
dob: Data de nascimento | Nascido em | Nascida em | Nascimento
phone: Telefone | Número de telefone | Celular | Telefone para contato
email: E-mail | Correio eletrônico | Endereço de e-mail | Email
iban: IBAN | Conta IBAN | Código IBAN | Nº IBAN
card: Número do cartão | Cartão | Cartão de crédito | Nº do cartão
zip: CEP | Código postal | CEP residencial | Cep
> Nossa cliente {person} se mudou para {city} no outono e atende no {phone}.
> Ontem {person} ligou do número {phone} e pediu a entrega em {address}.
> {person}, nascido em {dob}, mora em {city}.
> Favor corrigir a data de nascimento de {person}: {dob}.
> O reembolso da senhora {person} vai para a conta {iban}, confirmado para {email}.
> O senhor {person} pagou com o cartão {card} e quer a nota em {email}.
> O pedido de {person} deve chegar em {address}.
> Encontramos {person} em {city} para assinar o contrato.
- A próxima versão do serviço de cobrança será publicada na terça-feira às 14:30.
- Verifique se o pedido de 25 cadeiras saiu do depósito a tempo.
- A reunião sobre o orçamento de 2026 foi transferida para a sala grande.
- Toda fatura acima de R$ 1.500,00 precisa ser aprovada por dois gerentes.
"""
_HI = """
person: नाम | पूरा नाम | ग्राहक का नाम | आवेदक का नाम
address: पता | घर का पता | डाक पता | स्थायी पता
city: शहर | नगर | निवास स्थान | जन्म स्थान
dob: जन्म तिथि | जन्मतिथि | जन्म दिनांक | जन्म की तारीख
phone: फ़ोन | मोबाइल नंबर | फोन नंबर | दूरभाष
email: ईमेल | ई-मेल | ईमेल पता | मेल
iban: आईबीएएन | IBAN | खाता संख्या | बैंक खाता
card: कार्ड संख्या | कार्ड नंबर | क्रेडिट कार्ड | क्रेडिट कार्ड नंबर
zip: पिन कोड | पिनकोड | डाक कोड | पोस्टल कोड
> हमारी ग्राहक {person} वसंत में {city} चली गईं और उनका नंबर {phone} है।
> कल {person} ने {phone} से फोन किया और पार्सल {address} पर मंगवाया।
> {person} का जन्म {dob} को हुआ और वे {city} में रहते हैं।
> कृपया {person} की जन्म तिथि {dob} कर दें।
> श्रीमती {person} का पैसा खाते {iban} में जाएगा, सूचना {email} पर भेजी गई।
> श्री {person} ने कार्ड {card} से भुगतान किया और बिल {email} पर मांगा।
> {person} जी का सामान {address} पर पहुँचाना है।
> हमने {city} में {person} से मिलकर अनुबंध किया।
- बिलिंग सेवा का अगला संस्करण मंगलवार को 14:30 बजे जारी होगा।
- कृपया जाँच लें कि 25 कुर्सियों का ऑर्डर समय पर गोदाम से निकला या नहीं।
- 2026 के बजट की बैठक बड़े सभागार में होगी।
- 1,500 रुपये से अधिक के हर बिल को दो प्रबंधकों की मंज़ूरी चाहिए।
"""
_ZH = """
person: 姓名 | 客户姓名 | 联系人 | 收件人
address: 地址 | 住址 | 家庭住址 | 收货地址
city: 城市 | 所在城市 | 居住地 | 出生地
dob: 出生日期 | 生日 | 出生年月 | 出生年月日
phone: 电话 | 联系电话 | 手机号 | 手机号码
email: 邮箱 | 电子邮件 | 电子邮箱 | 邮箱地址
iban: IBAN | 国际银行账号 | 银行账号 | 账户号码
card: 卡号 | 银行卡号 | 信用卡号 | 信用卡
zip: 邮编 | 邮政编码 | 邮政编号 | 区号邮编
> 我们的客户{person}今年春天搬到了{city}，电话是{phone}。
> 昨天{person}先生从{phone}打来电话，要求把包裹寄到{address}。
> {person}，{dob}出生，现住在{city}。
> 请把{person}女士的出生日期改为{dob}。
> {person}的退款将汇入账户{iban}，并已发邮件到{email}。
> 客户{person}用卡{card}付款，希望发票寄到{email}。
> 收件人{person}的地址是{address}。
> 我们在{city}与{person}签了租约。
- 计费服务的下一个版本将于周二14:30发布。
- 请检查25把椅子的订单是否按时离开仓库。
- 关于2026年预算的会议改到大会议室举行。
- 超过1,500元的发票必须由两位经理批准。
"""
_KO = """
person: 이름 | 성명 | 고객명 | 담당자
address: 주소 | 집 주소 | 배송지 | 거주지 주소
city: 도시 | 시/군/구 | 거주지 | 출생지
dob: 생년월일 | 생일 | 출생일 | 출생 연월일
phone: 전화번호 | 연락처 | 휴대폰 | 휴대전화 번호
email: 이메일 | 이메일 주소 | 전자우편 | 메일
iban: IBAN | 계좌번호 | 은행 계좌 | 국제계좌번호
card: 카드번호 | 신용카드 | 카드 번호 | 신용카드 번호
zip: 우편번호 | 우편 번호 | 우편코드 | 우편번호(집)
> 저희 고객 {person} 씨는 봄에 {city}(으)로 이사했고 연락처는 {phone}입니다.
> 어제 {person} 님이 {phone}에서 전화해 소포를 {address}(으)로 보내 달라고 했습니다.
> {person} 씨는 {dob}에 태어나 {city}에 살고 있습니다.
> {person} 님의 생년월일을 {dob}(으)로 고쳐 주세요.
> {person} 고객님의 환불은 계좌 {iban}(으)로 가고 {email}로 안내했습니다.
> 고객 {person}은 카드 {card}로 결제하고 영수증을 {email}로 원합니다.
> 담당자 {person}가 {address}를 방문했습니다.
> 우리는 {city}에서 {person}와 임대 계약을 맺었습니다.
- 청구 서비스의 다음 버전은 화요일 14시 30분에 배포됩니다.
- 의자 25개 주문이 제때 창고를 떠났는지 확인해 주세요.
- 2026년 예산 회의는 큰 회의실로 옮겼습니다.
- 1,500원을 넘는 청구서는 관리자 두 명의 승인이 필요합니다.
"""
_AR = """
person: الاسم | الاسم الكامل | اسم العميل | اسم المستلم
address: العنوان | عنوان السكن | العنوان البريدي | عنوان التسليم
city: المدينة | مدينة الإقامة | مكان الإقامة | مكان الميلاد
dob: تاريخ الميلاد | تاريخ الولادة | مواليد | تاريخ ميلاد العميل
phone: الهاتف | رقم الهاتف | الجوال | رقم الجوال
email: البريد الإلكتروني | البريد | الإيميل | عنوان البريد الإلكتروني
iban: الآيبان | رقم الآيبان | رقم الحساب | IBAN
card: رقم البطاقة | بطاقة الائتمان | البطاقة | رقم بطاقة الائتمان
zip: الرمز البريدي | الرمز البريدي للعنوان | رمز البريد | الرقم البريدي
> انتقلت عميلتنا {person} إلى مدينة {city} في الربيع ورقم هاتفها {phone}.
> اتصل أمس السيد {person} من الرقم {phone} وطلب إرسال الطرد إلى {address}.
> {person} من مواليد {dob} ويسكن في {city}.
> يرجى تعديل تاريخ ميلاد {person} إلى {dob}.
> سيحول المبلغ للسيدة {person} إلى الحساب {iban} وأرسلنا التأكيد إلى {email}.
> دفع العميل {person} بالبطاقة {card} ويريد الفاتورة على {email}.
> طلب {person} يجب أن يصل إلى العنوان {address}.
> التقينا {person} في {city} لتوقيع العقد.
- ستصدر النسخة القادمة من خدمة الفواتير يوم الثلاثاء الساعة 14:30.
- يرجى التحقق من خروج طلب 25 كرسيا من المستودع في الوقت المحدد.
- نُقل اجتماع ميزانية 2026 إلى القاعة الكبيرة.
- كل فاتورة تزيد على 1,500 ريال تحتاج إلى موافقة مديرين.
"""
_RU = """
person: ФИО | Фамилия Имя Отчество | Имя | Контактное лицо
address: Адрес | Адрес проживания | Домашний адрес | Адрес доставки
city: Город | Населённый пункт | Город проживания | Место рождения
dob: Дата рождения | Родился | Д/р | Родилась
phone: Телефон | Номер телефона | Мобильный | Моб. телефон
email: Эл. почта | Электронная почта | Почта | Адрес эл. почты
iban: IBAN | Номер счёта | Счёт IBAN | Расчётный счёт
card: Номер карты | Банковская карта | Карта | № карты
zip: Индекс | Почтовый индекс | Индекс адреса | Почт. индекс
> Наша клиентка {person} весной переехала в город {city}, телефон {phone}.
> Вчера {person} звонил с номера {phone} и просил доставить посылку по адресу {address}.
> {person}, дата рождения {dob}, проживает: {city}.
> Прошу исправить дату рождения: {person}, {dob} г. р.
> Возврат для клиента {person} уйдёт на счёт {iban}, письмо отправлено на {email}.
> Клиент {person} заплатил картой {card} и просит счёт на {email}.
> Заказ получит {person} по адресу {address}.
> Договор подписала {person} в городе {city}.
- Следующая версия сервиса расчётов выйдет во вторник в 14:30.
- Проверьте, пожалуйста, ушёл ли заказ на 25 стульев со склада вовремя.
- Совещание по бюджету на 2026 год перенесено в большой зал.
- Каждый счёт больше 1500,00 рублей должны утвердить два руководителя.
"""
_TR = """
person: Ad Soyad | Adı Soyadı | İsim | Müşteri adı
address: Adres | Ev adresi | İkamet adresi | Teslimat adresi
city: Şehir | İl | İlçe | Doğum yeri
dob: Doğum tarihi | Doğum günü | D. tarihi | Doğum Tarihi
phone: Telefon | Telefon numarası | Cep telefonu | Cep no
email: E-posta | E-posta adresi | Eposta | Mail adresi
iban: IBAN | Hesap (IBAN) | IBAN no | Banka hesabı
card: Kart numarası | Kredi kartı | Kart no | Kredi kartı numarası
zip: Posta kodu | PK | Posta Kodu | Posta kod
> Müşterimiz {person} ilkbaharda {city} şehrine taşındı, telefonu {phone}.
> Dün {person} {phone} numarasından arayıp paketi {address} adresine istedi.
> {person}, {dob} doğumlu, {city} şehrinde oturuyor.
> Lütfen {person} için doğum tarihini {dob} olarak düzeltin.
> {person} Hanım için iade {iban} hesabına yatacak, bilgi {email} adresine gitti.
> {person} Bey {card} numaralı kartla ödedi, faturayı {email} adresine istiyor.
> Sayın {person} için sipariş {address} adresine gidecek.
> {city} şehrinde {person} ile kira sözleşmesi imzaladık.
- Fatura hizmetinin yeni sürümü salı günü saat 14:30'da yayınlanacak.
- Lütfen 25 sandalyelik siparişin depodan zamanında çıkıp çıkmadığını kontrol edin.
- 2026 bütçe toplantısı büyük salona alındı.
- 1.500,00 lirayı aşan her faturayı iki yönetici onaylamalıdır.
"""
_UK = """
person: ПІБ | Прізвище, ім'я, по батькові | Ім'я | Контактна особа
address: Адреса | Адреса проживання | Домашня адреса | Адреса доставки
city: Місто | Населений пункт | Місто проживання | Місце народження
dob: Дата народження | Народився | Д.н. | Народилася
phone: Телефон | Номер телефону | Мобільний | Моб. телефон
email: Ел. пошта | Електронна пошта | Пошта | Електронна адреса
iban: IBAN | Номер рахунку | Рахунок IBAN | Рахунок
card: Номер картки | Банківська картка | Картка | № картки
zip: Індекс | Поштовий індекс | Індекс адреси | Пошт. індекс
> Наша клієнтка {person} навесні переїхала до міста {city}, телефон {phone}.
> Учора {person} дзвонив з номера {phone} і просив доставити посилку на адресу {address}.
> {person}, дата народження {dob}, мешкає: {city}.
> Прошу виправити дату народження: {person}, {dob} р. н.
> Повернення для клієнта {person} піде на рахунок {iban}, лист надіслано на {email}.
> Клієнт {person} заплатив карткою {card} і просить рахунок на {email}.
> Замовлення отримає {person} за адресою {address}.
> Договір підписала {person} у місті {city}.
- Наступна версія сервісу розрахунків вийде у вівторок о 14:30.
- Перевірте, будь ласка, чи вчасно замовлення на 25 стільців покинуло склад.
- Нараду щодо бюджету на 2026 рік перенесено до великої зали.
- Кожен рахунок понад 1500,00 гривень мають затвердити два керівники.
"""

_ISO, _POINT, _SLASH, _DASH = "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y"


def _locale(name: str, faker: str, dates: tuple[str, ...], months: str, said: str) -> Locale:
    made = Locale(name, faker, faker[-2:], (_ISO, *dates), tuple(months.split()))
    for line in said.strip().splitlines():
        if line.startswith("> "):
            made.about_people.append(line[2:])
        elif line.startswith("- "):
            made.about_nobody.append(line[2:])
        else:
            kind, _, labels = line.partition(": ")
            made.labels[kind] = labels.split(" | ")
    return made


# In a form of a date, MONTH stands for the name of the month.
LOCALES = (
    _locale("en", "en_US", ("MONTH %-d, %Y", "%m/%d/%Y"), "January February March April May June July August September October November December", _EN),
    _locale("de", "de_DE", (_POINT, "%-d. MONTH %Y"), "Januar Februar März April Mai Juni Juli August September Oktober November Dezember", _DE),
    _locale("fr", "fr_FR", (_SLASH, "%-d MONTH %Y"), "janvier février mars avril mai juin juillet août septembre octobre novembre décembre", _FR),
    _locale("es", "es_ES", (_SLASH, "%-d de MONTH de %Y"), "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre", _ES),
    _locale("it", "it_IT", (_SLASH, "%-d MONTH %Y"), "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre", _IT),
    _locale("nl", "nl_NL", (_DASH, "%-d MONTH %Y"), "januari februari maart april mei juni juli augustus september oktober november december", _NL),
    _locale("pl", "pl_PL", (_POINT, "%-d MONTH %Y"), "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia", _PL),
    _locale("ja", "ja_JP", ("%Y年%-m月%-d日", "%Y/%m/%d"), "", _JA),
    _locale("pt-BR", "pt_BR", (_SLASH, "%-d de MONTH de %Y"), "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro", _PT),
    _locale("hi", "hi_IN", (_SLASH, "%-d MONTH %Y"), "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर", _HI),
    _locale("zh", "zh_CN", ("%Y年%-m月%-d日", "%Y/%m/%d"), "", _ZH),
    _locale("ko", "ko_KR", ("%Y년 %-m월 %-d일", "%Y.%m.%d"), "", _KO),
    _locale("ar", "ar_SA", (_SLASH, "%-d MONTH %Y"), "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر", _AR),
    _locale("ru", "ru_RU", (_POINT, "%-d MONTH %Y г."), "января февраля марта апреля мая июня июля августа сентября октября ноября декабря", _RU),
    _locale("tr", "tr_TR", (_POINT, "%-d MONTH %Y"), "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık", _TR),
    _locale("uk", "uk_UA", (_POINT, "%-d MONTH %Y р."), "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня", _UK),
)  # fmt: skip
