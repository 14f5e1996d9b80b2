"""Words that are not names by themselves: of everyday English, and of what tool results are made of."""

from __future__ import annotations

SMALL = frozenset(
    "the a an of to in is it and or for on with at by from this that was are be as not but have has had you your i we they he she my his "
    "her our their its me him them us will would can could should do does did if then than so no yes all any some into out up down over "
    "under about after before when where who what which how there here just like get got go going been being were also only very more "
    "most other new now one two".split()
)
"""The small words: many of them make a line prose."""

NO_NAMES = SMALL | frozenset(
    "info debug warning warn error fatal trace critical notice get post put patch delete head options http https html json xml yaml utf null true false none "
    "ok todo fixme note usage example returns return raises args parameters type name value key id date time status code message description default "
    "monday tuesday wednesday thursday friday saturday sunday january february march june july august september october november december mon tue wed thu fri "
    "sat sun jan feb mar apr jun jul aug sep oct nov dec utc gmt cest cet est pst api url uri sql cpu gpu ram os linux windows python java javascript typescript "
    "select from where insert update create table index file line module class function test tests build failed passed success install installed version "
    "request response server client service started stopped running finished completed connection timeout retry exception traceback param params rename bump refactor fix remove add drop handle speed "
    "author account contact secret detail values full flag deployment envelope please confirmation summary total subtotal "
    "dev qa ops hr admin tel mob manager engineer developer designer sales legal marketing finance support role email phone address city country team mr mrs ms dr "
    "yeni dün bugün yarın bay bayan sayın türkiye toplantıya toplantıda sözleşmeyi".split()
)
"""Capitalised or not, these never count as names."""

LABELS = frozenset("BIC CVC CVV DOB IBAN IMEI ISIN NHS PIN SEPA SSN SWIFT VAT".split())
"""What stands before numbers, in capitals: never names, unlike `Iban`, which is one."""

EVERYDAY = NO_NAMES | frozenset(
    "these those an i'm i've i'll i'd you're you've you'll we're we've we'll they're they've he's she's it's that's what's there's here's where's who's "
    "how's let's don't doesn't didn't can't couldn't won't wouldn't isn't aren't wasn't weren't haven't hasn't hadn't shouldn't am might must shall let "
    "myself yourself himself herself itself ourselves themselves mine yours hers ours theirs whose whom why because since until although though unless "
    "whether while during except despite within without against among along across around behind below beneath beside besides between beyond near off onto "
    "through throughout toward towards upon via per again almost already always anyway away back else enough even ever far finally first last later maybe "
    "never next often once perhaps probably quite rather really recently soon sometimes still such therefore thus today tomorrow tonight together too twice "
    "usually well yesterday yet instead however otherwise actually currently simply especially each every both either neither few fewer less little lot "
    "lots many much several same another others own none nobody nothing anybody anyone anything somebody someone something everybody everyone everything "
    "three four five six seven eight nine ten eleven twelve hundred thousand million half second third single double accept according agree allow answer "
    "appear apply arrive arrived ask asked based become began begin believe believed book bought break bring broke brought built buy call called came "
    "cancel care carry change charge check choose clean clear click come confirm consider contain continue copy cost cover cut decide deliver did discuss "
    "does doing done draw drink drive eat enter excuse expect explain fall feel felt fill find follow following forget forward found gave getting give "
    "given goes gone grow happen happened hear heard held help hold include includes including inform join keep kept kind knew know known learn leave left "
    "lent lie listen live lived living look looking lose lost made make makes making mean means meet meeting miss move need needed needs offer open order "
    "paid pay place planned plan play prepare provide pull push put reach read receive received record regarding regards remember remind remove reply "
    "report require reset review run said saw say saying says see seem seems seen sell send sent set share shipped show showed shows sign sit sleep sold "
    "sorry speak spend spoke stand start stay stop submit suggest take taken taking talk teach tell thank thanks thing things think thought told took "
    "transfer travel tried try trying turn understand use used uses using verify visit wait want wanted wants was watch watched wear went win wish won "
    "wonder work worked working works worry write written wrote able afraid alone available bad beautiful best better big bored broken busy certain cheap "
    "close cold cool crazy current dead different difficult due early easy entire excited extra fast favorite final fine free fresh friendly funny good "
    "great happy hard hardly heavy high hot huge important interesting large late local low main major modern monthly necessary nice normal old only "
    "original particular personal poor popular possible pretty previous private proud public quick quiet ready real recent red right sad safe serious sick "
    "similar simple slow small social special strange stupid sure terrible tired top true typical unable urgent usual various warm weird welcome whole wide "
    "wonderful worst wrong action activity age agreement amount application appointment area article bag ball bank bed bike birth birthday bit board boat "
    "body bottle box boy boys brother bus business cake car card cards cars cash cat center chair chance child children class coffee colour color company "
    "computer conversation couple course credit customer customers dad data daughter day days deal degree dinner doctor dog dogs door dream driver dude "
    "effort employee end evening event everyday eye eyes face fact family fan fans father feet feeling film fire fish floor flight flower food foot form "
    "friend friends front fun game games gift girl girls goal god government group guy guys hair hand hands heart hello hey hi history home hospital hotel "
    "hour hours house husband idea income individual information insurance internet invoice issue item items job jobs journey kid kids kitchen knowledge "
    "lady language law letter level library license life light list loan location luck lunch man material matter meal medicine member members memory men "
    "mind minute minutes mistake mom moment money month months morning mother mouth movie music nation news night number numbers office oil opinion option "
    "oh package pages paper parent parents part parts party passport past password patient payment people person photo picture pictures piece plane plans "
    "player point police position power president prices problem problems product products program project purchase purpose question questions rain reason "
    "recommendation records reservation rest restaurant result results road room sale school science season seat security sense shop side sister situation "
    "size skin son song songs sort sound space staff state states statement station step store stories story street student students stuff style sun system "
    "table tax tea teacher team television text ticket tickets times title town toy trade train tree trip trouble truck truth user users vacation vehicle "
    "video view voice war water way weather website week weekend weeks wife wind window winter woman women word words world year years yeah yes yep nope "
    "okay wow bro gonna wanna gotta ya u ur account's billing shipping attached dear congratulations sincerely cheers greetings hopefully unfortunately "
    "enclosed "
    # What sentences of other languages begin with.
    "gestern heute bitte danke unsere unserer rechnung lieferung bestellung aujourd'hui notre facture livraison commande ayer hoy gracias nuestro nuestra factura pedido ieri oggi grazie nostro nostra fattura consegna "
    "gisteren vandaag bedankt bestelling factuur wczoraj dzisiaj proszę dziękuję zamówienie faktura ontem hoje obrigado nosso nossa lütfen teşekkürler müşterimiz sipariş fatura teslimat".split()
)
"""At the start of a sentence, or in a line without capital letters, these are hardly ever names."""
