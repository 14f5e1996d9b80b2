"""Skills that are looked for in other words than their own: how many come first, and among three."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sealab.server.use_cases.skills.search import SkillIndex
from sealab.tools_registry.search.ranking import SearchIndex

from .test_search import draft, service_below

DATA = json.loads((Path(__file__).parents[2] / "data" / "search" / "skills_in_other_words.json").read_text())


async def test_most_vague_queries_find_their_skill_as_search_tools_does(tmp_path: Path) -> None:
    with service_below(tmp_path) as service:
        for name, signature, description in DATA["skills"]:
            service.store().save(draft(name, description, (), name + signature))
        index = SkillIndex(service)
        await index.refresh()
        documents = [each.document for each in index()[1]]
    search = SearchIndex(documents).search
    found = [([hit.name for hit in search(query, limit=3)], name) for query, name in DATA["queries"]]
    figures = sum(name == three[0] for three, name in found), sum(name in three for three, name in found)
    assert min(figures[0] - 66, figures[1] - 87) >= 0, figures


def test_the_set_names_each_skill() -> None:
    assert (len(DATA["skills"]), len(DATA["queries"])) == (60, 100)
    assert {name for _, name in DATA["queries"]} == {each[0] for each in DATA["skills"]}


@pytest.mark.parametrize("query", ["zebra", "quantum chromodynamics", "xyzzy plugh"])
async def test_what_no_skill_means_finds_none(tmp_path: Path, query: str) -> None:
    with service_below(tmp_path) as service:
        for name, signature, description in DATA["skills"][:20]:
            service.store().save(draft(name, description, (), name + signature))
        assert (await SkillIndex(service).page(query, None, 3)).total == 0
