"""How well tools are found: sealab with and without vectors beside what a user would pick instead, in one run.

    python tests/benchmarks/search.py FOLDER

FOLDER holds sets of tools and queries as `NAME.json.gz`: `{"dataset", "tools": [{name, server, category, description,
input_schema?}], "queries": [{id, query, relevant: [names]}]}`.

Recall@5 of a query is |relevant ∩ first 5| / min(5, |relevant|); nDCG@5 (Järvelin and Kekäläinen, 2002) counts a hit the
less, the later it comes. A set's figure is the mean over its queries, *macro* the mean over the sets. With typing errors,
every word of four letters or more has one: a letter dropped, put in, replaced, or exchanged with the next; always the
same ones for the same query. How long a search takes is measured by `make gate`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from rapidfuzz import fuzz, process
from rapidfuzz.utils import default_process

from sealab.tools_registry.search.ranking import Searchable, SearchIndex
from sealab.tools_registry.search.tokens import STOP_WORDS, words

FIRST = 5
POOL = 10_000
NAMES_TRIED = 2_000
# Name, server, description, parameters: the best of six settings that were tried.
FTS5_WEIGHTS = "2.0, 1.0, 1.0, 0.5"
NONSENSE = (
    "purple elephant dancing on the moon", "knit a woolen sweater for grandma", "asdf qwer zxcv uiop",
    "the meaning of life and why we dream", "how do I braise short ribs", "my cat is sad today",
    "medieval sword fencing stance", "photosynthesis in ferns", "kiss the frog prince", "repair bicycle chain",
    "which dinosaur was the largest", "polish the silver spoons", "train my parrot to talk", "paint my fence green",
)  # fmt: skip
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


Found = list[list[str]]
Search = Callable[[list[dict], Sequence[str]], Found]


def misspelt(text: str, seed: str) -> str:
    dice = random.Random(seed)

    def spoil(match: re.Match[str]) -> str:
        word = match.group()
        if len(word) < 4:
            return word
        kind, place, letter = dice.randrange(4), dice.randrange(len(word)), dice.choice(ALPHABET)
        if kind == 0:
            return word[:place] + word[place + 1 :]
        if kind == 1:
            return word[:place] + letter + word[place:]
        if kind == 2:
            return word[:place] + letter + word[place + 1 :]
        place = min(place, len(word) - 2)
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]

    return re.sub(r"[A-Za-z]+", spoil, text)


def parameters(tool: dict) -> list[tuple[str, str]]:
    properties = (tool.get("input_schema") or {}).get("properties") or {}
    return [
        (name, str(about.get("description") or "") if isinstance(about, dict) else "")
        for name, about in properties.items()
    ]


def searchable(tool: dict, key: str) -> Searchable:
    return Searchable(key, tool["name"], tool["server"], tool["category"], tool["description"], tuple(parameters(tool)))


def sealab(*, vectors: bool) -> Search:
    def run(tools: list[dict], queries: Sequence[str]) -> Found:
        index = SearchIndex([searchable(tool, str(number)) for number, tool in enumerate(tools)], vectors=vectors)
        return [[hit.name for hit in index.search(query, limit=FIRST)] for query in queries]

    return run


def sqlite(tools: list[dict], queries: Sequence[str]) -> Found:
    """FTS5 at its best: porter stemming, names split at case, any word that is no stop word, columns weighted."""
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE tools USING fts5 (name, server, description, parameters, tokenize='porter unicode61')"
    )
    database.executemany(
        "INSERT INTO tools (rowid, name, server, description, parameters) VALUES (?, ?, ?, ?, ?)",
        (
            (
                number,
                " ".join(words(tool["name"])),
                tool["server"],
                tool["description"],
                " ".join(f"{' '.join(words(name))} {about}" for name, about in parameters(tool)),
            )
            for number, tool in enumerate(tools)
        ),
    )

    def search(query: str) -> list[str]:
        terms = [term for term in dict.fromkeys(re.findall(r"\w+", query.lower())) if term not in STOP_WORDS]
        if not terms:
            return []
        rows = database.execute(
            f"SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {FTS5_WEIGHTS}), rowid LIMIT {FIRST}",
            (" OR ".join(f'"{term}"' for term in terms),),
        )
        return [tools[number]["name"] for (number,) in rows]

    return [search(query) for query in queries]


def token_set(tools: list[dict], queries: Sequence[str]) -> Found:
    texts = [default_process(f"{' '.join(words(tool['name']))} {tool['description']}") for tool in tools]

    def search(query: str) -> list[str]:
        hits = process.extract(default_process(query), texts, scorer=fuzz.token_set_ratio, limit=FIRST)
        return [tools[number]["name"] for _, _, number in hits]

    return [search(query) for query in queries]


def recall(relevant: list[str], found: list[str]) -> float:
    return len(set(relevant) & set(found)) / min(FIRST, len(set(relevant)))


def ndcg(relevant: list[str], found: list[str]) -> float:
    gain = sum(1 / math.log2(place + 2) for place, name in enumerate(dict.fromkeys(found)) if name in relevant)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(FIRST, len(set(relevant)))))


def figure(measure: Callable[[list[str], list[str]], float], queries: list[dict], answers: Found) -> float:
    pairs = zip(queries, answers, strict=True)
    return 100 * mean(measure(query["relevant"], found) for query, found in pairs)


def print_quality(sets: list[dict], searches: dict[str, Search]) -> None:
    heads = [each["dataset"] for each in sets]
    width = max(map(len, searches)) + 2
    tables: dict[str, dict[str, list[float]]] = {"recall@5": {}, "nDCG@5": {}, "recall@5 with typing errors": {}}
    for name, search in searches.items():
        for each in sets:
            queries = each["queries"]
            clean = search(each["tools"], [query["query"] for query in queries])
            spoilt = search(each["tools"], [misspelt(query["query"], str(query["id"])) for query in queries])
            for title, value in zip(
                tables,
                (figure(recall, queries, clean), figure(ndcg, queries, clean), figure(recall, queries, spoilt)),
                strict=True,
            ):
                tables[title].setdefault(name, []).append(value)
    for title, table in tables.items():
        print(f"\n{title:<{width}}" + "".join(f"{head[:14]:>16}" for head in heads) + f"{'macro':>10}")
        for name, values in table.items():
            print(f"{name:<{width}}" + "".join(f"{value:>16.1f}" for value in values) + f"{mean(values):>10.1f}")


def print_weak(sets: list[dict]) -> None:
    """Print to how many queries perhaps no tool fits, by sealab: of each set, and of sentences that name no task."""
    print("\nqueries to which perhaps no tool fits, in percent: of the set, of nonsense")
    for each in sets:
        index = SearchIndex([searchable(tool, str(number)) for number, tool in enumerate(each["tools"])])
        asked = ([query["query"] for query in each["queries"]], NONSENSE)
        shares = [100 * mean(all(hit.weak for hit in index.search(query)) for query in queries) for queries in asked]
        print(f"  {each['dataset']:<24}{shares[0]:>8.1f}{shares[1]:>8.1f}")


def pooled(sets: list[dict]) -> list[dict]:
    """All tools of all sets, each name and server once, as many as `POOL`, always the same ones."""
    once = {(tool["name"], tool["server"]): tool for each in sets for tool in each["tools"]}
    tools = list(once.values())
    random.Random(0).shuffle(tools)
    return tools[:POOL]


def print_names(tools: list[dict], searches: dict[str, Search]) -> None:
    chosen = random.Random(1).sample([tool["name"] for tool in tools], min(NAMES_TRIED, len(tools)))
    print(
        f"\n{len(chosen):,} names as queries, among {len(tools):,} tools: exact name first; an error in every word, among 5"
    )
    for name, search in searches.items():
        exact = search(tools, chosen)
        spoilt = search(tools, [misspelt(" ".join(words(each)), each) for each in chosen])
        first = mean(found[:1] == [each] for each, found in zip(chosen, exact, strict=True))
        among = mean(each in found for each, found in zip(chosen, spoilt, strict=True))
        print(f"  {name:<24}{100 * first:>8.1f} %{100 * among:>8.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    sets = [json.loads(gzip.decompress(path.read_bytes())) for path in sorted(arguments.folder.glob("*.json.gz"))]
    if not sets:
        parser.error(f"{arguments.folder} holds no NAME.json.gz: name a folder that does")
    for each in sets:
        for tool in each["tools"]:
            for key in ("server", "category", "description"):
                tool[key] = tool.get(key) or ""
    searches: dict[str, Search] = {"sealab": sealab(vectors=True), "sealab, words alone": sealab(vectors=False)}
    searches["SQLite FTS5, porter"] = sqlite
    searches["rapidfuzz token_set"] = token_set
    tools = pooled(sets)
    print_quality(sets, searches)
    print_weak(sets)
    print_names(tools, {name: search for name, search in searches.items() if name.startswith("sealab")})


if __name__ == "__main__":
    main()
