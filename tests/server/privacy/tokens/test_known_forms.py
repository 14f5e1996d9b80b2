"""What the model sees of a known value in another form: the same value, and what stood there comes back."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.base.database import HomeDatabase
from sealab.server.base.settings import PrivacyLevel, PrivacyMode, Settings
from sealab.server.governance.caller import Caller
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Mode
from sealab.server.privacy.privacy import Privacy
from sealab.server.privacy.token_texts import TOKEN
from sealab.server.privacy.tokens.parts import Text, Tree
from sealab.server.privacy.tokens.run_tokens import RunTokens
from sealab.server.privacy.tokens.sanitizer import Sanitizer
from sealab.skills_db.vault import Value, Vault


def hidden(sanitizer: Sanitizer, text: str, scope: str) -> str:
    return cast("str", sanitizer.hide(scope, [Text(text)]).parts[0])


def bare(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))


def joined(sign: str) -> Callable[[str], str]:
    return lambda name: sign.join(name.split())


TRANSFORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "lower": str.lower,
    "upper": str.upper,
    "title": str.title,
    "casefold": str.casefold,
    "NFD": lambda name: unicodedata.normalize("NFD", name),
    "without accents": bare,
    "first_last": lambda name: joined("_")(name).lower(),
    "first.last": lambda name: joined(".")(name).lower(),
    "slug": lambda name: bare(joined("-")(name)).lower(),
    "FirstLast": joined(""),
    "Last, First": lambda name: f"{name.split()[-1]}, {name.split()[0]}",
    "J. Doe": lambda name: f"{name[0]}. {name.split()[-1]}",
    "jdoe": lambda name: (name[0] + name.split()[-1]).lower(),
    "base 64": lambda name: base64.b64encode(name.encode()).decode(),
    "hexadecimal": lambda name: name.encode().hex(),
    "URL": quote,
    "escapes": lambda name: json.dumps(name)[1:-1],
}
GIVEN = ["Jane", "Jürgen", "Zoë", "María", "Łukasz", "Иван", "Søren", "Anne-Marie", "Şule"]
FAMILY = ["Doering", "Müller-Groß", "Brannock", "O'Hara", "García", "Щербаков", "Kessling", "Ærøskov", "Yılmazer"]
names = st.builds("{} {}".format, st.sampled_from(GIVEN), st.sampled_from(FAMILY))
frames = st.sampled_from(
    ["{}", "Seen {} today.", "report_{}_final.pdf", '{{"note": "{}", "n": 3}}', "a,b\n{},2\n", "[{}] {}"]
)


@given(name=names, transform=st.sampled_from(sorted(TRANSFORMS)), frame=frames)
def test_every_form_is_hidden_and_what_stood_there_comes_back(
    real: Sanitizer, name: str, transform: str, frame: str
) -> None:
    real.learn("forms", [Tree([{"customer_name": name}])])
    form = TRANSFORMS[transform](name)
    if frame.startswith("{{") and json.dumps(form, ensure_ascii=False) != f'"{form}"':
        form = json.dumps(form)[1:-1]
    text = frame.format(form, form)
    shown = hidden(real, text, "forms")
    assert form not in shown
    assert TOKEN.search(shown)
    assert real.restore_text("forms", shown).content == text


@given(
    values=st.lists(st.tuples(names, st.sampled_from(sorted(TRANSFORMS))), min_size=1, max_size=6),
    between=st.text(" ,;_\n\"'%=\\{}[]ab1", max_size=8),
)
def test_any_mixture_of_forms_comes_back(real: Sanitizer, values: list[tuple[str, str]], between: str) -> None:
    real.learn("mixtures", [Tree([{"customer_name": name} for name, _ in values])])
    text = between.join(TRANSFORMS[transform](name) for name, transform in values)
    shown = hidden(real, text, "mixtures")
    assert real.restore_text("mixtures", shown).content == text
    assert hidden(real, shown, "mixtures") == shown


def test_the_tokens_of_the_forms_of_one_value_begin_alike(real: Sanitizer) -> None:
    people = ["Jane Doering", "John Kessling"]
    real.learn("alike", [Tree([{"customer_name": name} for name in people])])
    tokens = {
        name: [TOKEN.findall(hidden(real, form(name), "alike"))[0] for form in TRANSFORMS.values()] for name in people
    }
    begins = {name: {token[:6] for _kind, token in found} for name, found in tokens.items()}
    assert all(len(those) == 1 for those in begins.values())
    assert begins[people[0]] != begins[people[1]]
    assert len(set(tokens[people[0]])) == len({form(people[0]) for form in TRANSFORMS.values()})
    assert {kind for found in tokens.values() for kind, _token in found} == {"PERSON"}


def test_the_value_itself_can_be_restored_once_a_form_of_it_was_shown(vault: Vault, real: Sanitizer) -> None:
    real.learn("first", [Tree([{"customer_name": "Jane Doering"}])])
    hidden(real, "jane_doering", "first")
    token = vault.tokens_for("first", [Value("PERSON", "Jane Doering")])[0].shown
    assert real.restore_text("first", token).content == "Jane Doering"


def test_forgetting_a_value_forgets_its_forms(vault: Vault, real: Sanitizer) -> None:
    real.learn("forgotten", [Tree([{"customer_name": "Ines Adelung"}, {"customer_name": "John Kessling"}])])
    shown = hidden(real, "Ines Adelung ines_adelung iadelung; john_kessling", "forgotten")
    assert vault.forget_entries(vault.person("Ines Adelung").found) == {"PERSON": 3}
    restored = real.restore_text("forgotten", shown)
    assert restored.content.endswith("; john_kessling")
    assert len(restored.unknown) == 3


def test_a_form_that_two_people_share_belongs_to_neither(real: Sanitizer) -> None:
    real.learn("shared", [Tree([{"customer_name": "Jane Kessling"}, {"customer_name": "Jonas Kessling"}])])
    shown = hidden(real, "J. Kessling; Jane Kessling; Jonas Kessling", "shared")
    tokens = [token[:6] for _kind, token in TOKEN.findall(shown)]
    assert len(set(tokens)) == 3
    assert real.restore_text("shared", shown).content == "J. Kessling; Jane Kessling; Jonas Kessling"


def test_numbers_in_other_forms_come_back_as_they_were(real: Sanitizer) -> None:
    real.learn(
        "numbers",
        [Tree({"phone": "+1 (202) 555-0143", "iban": "DE89 3704 0044 0532 0130 00", "birth_date": "1980-03-05"})],
    )
    rows = {"called": 12025550143, "iban": "de89370400440532013000", "note": "born 5.3.1980 or March 5, 1980", "n": 7}
    shown = cast("dict[str, object]", real.hide("numbers", [Tree(rows)]).parts[0])
    assert shown["n"] == 7
    assert len(TOKEN.findall(json.dumps(shown))) == 4
    assert real.restore_value("numbers", shown).content == rows


def test_forms_are_known_again_by_another_process(vault: Vault, real: Sanitizer) -> None:
    real.learn("again", [Tree([{"customer_name": "Jane Doering"}])])
    shown = hidden(real, "jane_doering, Jane Doering, jdoering", "again")
    other = Sanitizer(Detector(DetectorOptions(mode=Mode.FAST)), vault)
    assert hidden(other, "jane_doering, Jane Doering, jdoering", "again") == shown
    assert hidden(other, "JaneDoering", "again") != "JaneDoering"


@pytest.fixture
def privacy(tmp_path: Path) -> Iterator[Privacy]:
    database = HomeDatabase(None, tmp_path)
    yield Privacy(Settings(privacy=PrivacyLevel.AUTO, privacy_mode=PrivacyMode.FAST), tmp_path, database)
    database.close()


async def shown_to(privacy: Privacy, run: RunTokens, text: str) -> str:
    return str((await privacy.hide("home", [Text(text)], run_tokens=run)).parts[0])


async def test_a_form_tells_a_run_nothing_of_values_that_it_was_not_given(privacy: Privacy) -> None:
    first = privacy.new_run_tokens("home")
    await privacy.learn("home", [{"customer_name": "Jane Doering"}], first)
    own = await shown_to(privacy, first, "Jane Doering")
    seen = []
    for run in (first, privacy.new_run_tokens("home")):
        seen.append(await shown_to(privacy, run, "jane_doering"))
        assert await privacy.restored(Caller("home"), seen[-1], destination="workspace") == "jane_doering"
    assert seen[0][:14] == own[:14]
    tried = await shown_to(privacy, privacy.new_run_tokens("home"), "doeringjane")
    assert TOKEN.fullmatch(tried)
    assert tried[:14] != own[:14]


async def test_forms_of_what_a_run_was_given_are_no_values_that_it_brings_itself(
    privacy: Privacy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy._trials, "most", 3)
    people = [f"Jane Doering{letter}" for letter in "abcdefghij"]
    forms = "\n".join(name.lower().replace(" ", "_") for name in people)
    shown = []
    for _ in range(2):
        run = privacy.new_run_tokens("home")
        await privacy.learn("home", [{"customer_name": name} for name in people], run)
        shown.append(await shown_to(privacy, run, forms))
    assert shown[0] == shown[1]
    assert len(set(TOKEN.findall(shown[0]))) == len(people)
