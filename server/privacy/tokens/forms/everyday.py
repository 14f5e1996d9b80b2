"""Words that say something without being somebody's name, though many a person has them in the name.

A name of one such word is looked for as it is written. One of several plain ones is not looked for in small letters
with blanks between them: `may price` is no person.
"""

from __future__ import annotations

from ...detection.ner.ordinary_words import EVERYDAY as _ENGLISH

_PLAIN = _ENGLISH | frozenset(
    "will may mark grant rose hope joy grace art bill rich van von and long young black white brown green king page price early case day park hill "
    "wood stone field lane street ever best good way june april august sun key love test user name mail phone data admin new old first last client "
    "customer manager team support sales bank office north south east west small little large strong sharp short smart".split()
)
_NAMES_AND_WORDS = frozenset(
    # English
    "faith charity chance chase hunter mason cooper "
    "baker cook carter taylor fisher potter turner butler major bishop pope knight summer winter autumn spring daisy lily ivy olive violet ruby pearl "
    "amber crystal jade sky skye river rivers brook brooks forest woods wells fields banks bridges church temple bell ball cross drew pat sue rob bob "
    "frank ernest jack jean gene dean dale glen cliff ray guy dick max lance miles chip victor rusty sandy rocky stormy misty destiny heaven melody "
    "harmony carol chuck rod wade bud buck duke earl prince baron noble swift moody gay wise sweet "
    "rice bacon berry cherry apple lemon pepper curry bean ham lamb fish bird fox wolf lion bear bull crane swan hawk drake crow martin pike bass "
    "gold silver steel iron brass cash penny nichols rush walker singer porter driver weaver miner farmer gardener page usher parks moon star "
    "christian frost snow rain flood storm waters lake marsh moss reed branch root leaf flower plant gates house hall kitchen rooms castle towers "
    "home post mobile reading nice bath split cork orange lincoln santa mission beach lake paradise hope "
    # German, French, Spanish, Italian, Portuguese, Dutch, Polish, Turkish
    "ernst klein lang kurz braun schwarz weiss roth jung alt neu sommer herbst reich stark petit grand blanc noir roux rose marine claire fleur "
    "pierre prune aurore victoire clemence constance prudence aimee lange sol mar luz paz rosa cruz blanca flores campos reyes rey leal bueno moreno "
    "rubio delgado gallego iglesias torres vega rios prado dolores mercedes consuelo esperanza pilar soledad remedios rosario nieves bianca chiara "
    "fiore leone vito grazia gioia speranza serena felice santo natale pasquale libero bruno greco costa fontana villa sala monti silva reis rocha "
    "pinto machado leite ramos neves mel jong groot wit zwart dijk berg bos visser bakker kok lis kot can deniz umut su ay kaya demir".split()
)
_INITIAL_AND_NAME = frozenset(
    # An initial and a family name that are another word together: S. Park, P. Rice, C. Ross.
    "link blink brush slogan loved spark space price cross brand grant prose plane stone clamp crane train brain drain grain strain break bread broad brook creed freed breed greed "
    "clark black flake slake clock block flock stock knock frock crock clove glove gray tray pray bray fray stray spray bowen owen shill thrill drill "
    "grill still skill chill quill swill stall small shall scale shale whale stale trace brace grace place glace space blade glade shade trade grade "
    "slate plate crate state skate elate irate grate orate bride pride slide glide guide wheel steel shell swell dwell smell spell quell share scare "
    "spare stare flare glare blare snare aware wrong prong strong along blown flown crown drown brown frown grown shown known frank crank drank prank "
    "blank flank plank clank thank shank spank stank swing bring cling fling sling sting thing wring string spring mring bland gland stand eland island "
    "wright bright fright flight plight slight alight knight blight bright sward award toward steward reward cover mover lover hover clover power tower "
    "lower flower mower shower blower slower grower trust crust thrust truth shoot smith scott stell swood ebook abill again allow along amend amount "
    "apart appoint arise aware alone alive adopt agate along about above abroad acute adore aside ahead alike amass amiss amuse annex anew append "
    "arest arose assort attack attend await awake award away delay decay relay belong below before behold beside begin became become "
    "clean clear climb close cloud clown cream creak crest crush crown chart charm chase cheat chest chin chose clash class crash crate scold scout "
    "scream scarf score scorn slave sleek sleep sleet slope smart smash smile smoke snail snake sneak snow spade spear speak spell spill spine spoke "
    "spool sport spray stack stage stair stake stale stalk stamp steal steam steed stern stick sting store storm story stove strap straw stray swamp "
    "swarm sweat sweep swing tread treat trend trial trick trill trim trip troll troop trove twine twist usage usher wheat where which whine whole "
    "flag flame flap flash flat flaw fleet flesh flick flint float flood floor flora flour flow fluff fluke flute fray freak frill frost plant plate "
    "play plea plead plot plough pluck plug plum plus prank press pretty prick prime print prior prize probe prone proof prove prune glass gloss glow "
    "drag drape dread dream dress drift drink drive droll drone drop drove drum dwarf elect enact erase event evict exact exile exit expand".split()
)
EVERYDAY = _PLAIN | _NAMES_AND_WORDS
"""Words that are no name where they stand in small letters."""
_ROLES = frozenset(
    "info contact support sales admin office hello team noreply no-reply donotreply service services help helpdesk billing accounts accounting finance "
    "hr jobs career careers press media marketing webmaster postmaster hostmaster abuse security privacy legal mail email newsletter news orders order "
    "shop store root test user users kontakt vertrieb buchhaltung bewerbung contacto ventas contato vendas contatto vendite biuro".split()
)
"""What stands before the `@` of an address that nobody is named in."""


def is_everyday(word: str) -> bool:
    """Return whether a word in small letters is no name by itself."""
    return word in EVERYDAY


def is_plain(word: str) -> bool:
    """Return whether a word in small letters is no name beside others of the kind: `mark`, `price`, but not `amber`."""
    return word in _PLAIN


def is_glued_word(letters: str) -> bool:
    """Return whether an initial and a family name are another word when they are written together."""
    return letters in _INITIAL_AND_NAME or letters in EVERYDAY


def is_role(letters: str) -> bool:
    """Return whether the name of a mailbox names nobody."""
    return letters in _ROLES or letters in EVERYDAY
