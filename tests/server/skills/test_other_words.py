"""Skills that are looked for in other words than their own: how many come first, and among three."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sealab.server.use_cases.skills.search import SkillIndex
from sealab.tools_registry.search.ranking import SearchIndex

from .test_search import draft, service_below

PLACE = Path(__file__).parents[2] / "data" / "search"
SETS = {
    each: json.loads((PLACE / f"skills_in_other_{each}.json").read_text()) for each in ("words", "domains", "trades")
}
DATA = SETS["words"]


@pytest.mark.parametrize(("name", "first", "three"), [("words", 70, 90), ("domains", 70, 90), ("trades", 64, 85)])
async def test_most_vague_queries_find_their_skill_as_search_tools_does(
    tmp_path: Path, name: str, first: int, three: int
) -> None:
    data = SETS[name]
    with service_below(tmp_path) as service:
        for skill, signature, description in data["skills"]:
            service.store().save(draft(skill, description, (), skill + signature))
        index = SkillIndex(service)
        await index.refresh()
        documents = [each.document for each in index()[1]]
    search = SearchIndex(documents).search
    found = [([hit.name for hit in search(query, limit=3)], skill) for query, skill in data["queries"]]
    figures = sum(skill in hits[:1] for hits, skill in found), sum(skill in hits for hits, skill in found)
    assert min(figures[0] - first, figures[1] - three) >= 0, figures


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
