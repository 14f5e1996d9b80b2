"""Skills that are looked for in other words than their own: how many come first, and among three."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sealab.server.use_cases.skills.search import SkillIndex
from sealab.tools_registry.search.ranking import SearchIndex

from ...tools_registry.test_search import documents as tools
from .test_search import draft, service_below

PLACE = Path(__file__).parents[2] / "data" / "search"
SETS = {
    each: json.loads((PLACE / f"skills_in_other_{each}.json").read_text()) for each in ("words", "domains", "trades")
}
DATA = SETS["words"]


Figures = tuple[int, int]


def figures_of(index: SearchIndex, queries: list[list[str]]) -> Figures:
    found = [([hit.key for hit in index.search(query, limit=3)], f"skills.{name}") for query, name in queries]
    return sum(key in hits[:1] for hits, key in found), sum(key in hits for hits, key in found)


@pytest.mark.parametrize(
    ("name", "alone", "beside_tools"),
    [("words", (70, 90), (54, 78)), ("domains", (70, 90), (54, 73)), ("trades", (64, 85), (43, 75))],
    ids=SETS,
)
async def test_most_vague_queries_find_their_skill_as_search_tools_does(
    tmp_path: Path, name: str, alone: Figures, beside_tools: Figures
) -> None:
    data = SETS[name]
    with service_below(tmp_path) as service:
        for skill, signature, description in data["skills"]:
            service.store().save(draft(skill, description, (), skill + signature))
        index = SkillIndex(service)
        await index.refresh()
        documents = [each.document for each in index()[1]]
    only = SearchIndex(documents)
    mixed = SearchIndex([*documents, *(each for each in tools() if each.category != "skills")])
    for query, _ in data["queries"][:10]:
        assert mixed.search(query, category="skills") == only.search(query)
    found = figures_of(only, data["queries"]) + figures_of(mixed, data["queries"])
    assert all(map(int.__ge__, found, alone + beside_tools)), found


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
def test_the_sets_name_each_skill(data: dict[str, list[list[str]]]) -> None:
    assert (len(data["skills"]), len(data["queries"])) == (60, 100)
    assert {name for _, name in data["queries"]} == {each[0] for each in data["skills"]}


@pytest.mark.parametrize("query", ["zebra", "quantum chromodynamics", "xyzzy plugh"])
async def test_what_no_skill_means_finds_none(tmp_path: Path, query: str) -> None:
    with service_below(tmp_path) as service:
        for name, signature, description in DATA["skills"][:20]:
            service.store().save(draft(name, description, (), name + signature))
        assert (await SkillIndex(service).page(query, None, 3)).total == 0
