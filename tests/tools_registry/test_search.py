"""What a search finds: by words, by meaning, by name, misspelt, step by step, and in what order."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.search import indexing
from sealab.tools_registry.search.file_paths import reworded
from sealab.tools_registry.search.ranking import DocumentReader, Searchable, SearchHit, SearchIndex
from sealab.tools_registry.search.tokens import STOP_WORDS

DATA = Path(__file__).parent.parent / "data" / "search"
QUERIES = [(each["query"], each["relevant"][0]) for each in json.loads((DATA / "queries.json").read_text())]


def documents() -> list[Searchable]:
    return [
        Searchable(
            f"{tool['server']}.{tool['name']}",
            tool["name"],
            tool["server"],
            tool["category"],
            tool["description"],
            tuple(tool["parameters"].items()),
        )
        for tool in json.loads((DATA / "tools.json").read_text())
    ]


INDEX = SearchIndex(documents())
BY_LETTERS = SearchIndex(documents(), vectors=False)


def names(hits: list[SearchHit]) -> list[str]:
    return [hit.name for hit in hits]


def misspelt(text: str, seed: int) -> str:
    """Give every word of four letters or more one error: a letter dropped, doubled, replaced or exchanged."""
    dice = random.Random(seed)

    def spoil(word: str) -> str:
        if len(word) < 4 or not word.isascii():
            return word
        place = dice.randrange(1, len(word) - 1)
        before, letter, after = word[:place], word[place], word[place + 1 :]
        return dice.choice(
            [
                before + after,
                before + letter * 2 + after,
                before + dice.choice("etaoinshrdlu") + after,
                before + after[0] + letter + after[1:],
            ]
        )

    return " ".join(spoil(word) for word in text.split(" "))


@pytest.mark.parametrize(("query", "name"), QUERIES)
def test_a_clear_query_finds_its_tool_among_the_first_three(query: str, name: str) -> None:
    assert name in names(INDEX.search(query, limit=3))


def test_most_clear_queries_find_their_tool_first() -> None:
    first = sum(names(INDEX.search(query, limit=1)) == [name] for query, name in QUERIES)
    assert first >= 0.8 * len(QUERIES)


def test_with_an_error_in_every_word_at_most_one_query_in_eight_loses_its_tool() -> None:
    tried = [(misspelt(query, seed), name) for seed in range(5) for query, name in QUERIES]
    found = sum(name in names(INDEX.search(query, limit=5)) for query, name in tried)
    assert found >= 7 / 8 * len(tried)


def test_words_alone_find_most_tools_and_vectors_find_more() -> None:
    def found(index: SearchIndex) -> int:
        return sum(name in names(index.search(query, limit=3)) for query, name in QUERIES)

    assert found(BY_LETTERS) >= 0.75 * len(QUERIES)
    assert found(INDEX) > found(BY_LETTERS)


def test_a_word_that_no_description_has_is_understood_by_its_meaning() -> None:
    assert "get_alerts" in names(INDEX.search("thunderstorms and hurricanes", limit=2))
    assert BY_LETTERS.search("thunderstorms and hurricanes") == []


@pytest.mark.parametrize(
    "query",
    ["git_log", "git.git_log", "gitLog", "GIT LOG", "git-log", "GitLog", "git log", "git/git_log", "mcp__git__git_log"],
)
def test_a_name_in_any_writing_finds_its_tool_first(query: str) -> None:
    assert names(INDEX.search(query, limit=1)) == ["git_log"]


def test_of_two_writings_of_one_name_the_one_that_was_asked_for_comes_first() -> None:
    index = SearchIndex([Searchable(name, name, "", "", "Get a user.") for name in ("getUser", "get-user", "get_user")])
    for name in ("getUser", "get-user", "get_user"):
        assert names(index.search(name, limit=1)) == [name]


def test_every_name_and_every_qualified_name_finds_its_own_tool_first() -> None:
    for document in documents():
        for query in (document.name, document.key, document.name.replace("_", " ").title()):
            assert names(INDEX.search(query, limit=1)) == [document.name], query


@pytest.mark.parametrize("query", ["creat_evnt", "listt contaners", "get_forcast", "resizImage", "covert_curency"])
def test_a_misspelt_name_finds_its_tool_first(query: str) -> None:
    wanted = {"c": "create_event", "l": "list_containers", "g": "get_forecast", "r": "resizeImage"}
    expected = "convert_currency" if query.startswith("cov") else wanted[query[0]]
    assert names(INDEX.search(query, limit=1)) == [expected]


@pytest.mark.parametrize("query", ["the fle", "the ile", "the fil"])
def test_a_word_of_four_letters_that_lost_one_is_found(query: str) -> None:
    tools = [Searchable(name, name) for name in ("read_file", "zip_map", "send_tile_set", "get_weather")]
    assert names(SearchIndex(tools, vectors=False).search(query, limit=1)) == ["read_file"]


def test_a_word_of_three_letters_is_no_misspelling_of_another() -> None:
    tools = [Searchable(name, name) for name in ("zip_map", "get_weather")]
    assert SearchIndex(tools, vectors=False).search("zap mop", limit=1) == []


def test_each_step_of_a_long_task_finds_its_tool() -> None:
    task = (
        "I am going on a trip next week. Search flights from Oslo to Lisbon and then book a hotel room for two guests. "
        "Also get the weather forecast, and finally send an email to my colleagues with the dates."
    )
    assert {"search_flights", "book_room", "get_forecast", "send_message"} <= set(names(INDEX.search(task, limit=6)))


def test_a_category_keeps_only_its_own() -> None:
    hits = INDEX.search("report", category="skills")
    assert names(hits)[0] == "weekly_report"
    assert {hit.category for hit in hits} == {"skills"}
    assert INDEX.search("report", category="no such category") == []


def test_a_filtered_search_ranks_as_the_whole_one_does() -> None:
    whole = [hit.name for hit in INDEX.search("list tables", limit=60) if hit.category == "data"]
    assert names(INDEX.search("list tables", category="data", limit=60))[:3] == whole[:3]


def test_a_blank_query_lists_everything_in_the_order_of_names() -> None:
    hits = INDEX.search("  \n", limit=100)
    assert names(hits) == sorted(document.name for document in documents())
    assert {hit.score for hit in hits} == {0.0}
    assert {hit.category for hit in INDEX.search("", category="media")} == {"media"}


@pytest.mark.parametrize("query", ["🙂🙂", "???", "zzqxv wqqzt", "\ud800\udfff", "\x00"])
def test_a_query_of_which_nothing_is_known_finds_nothing(query: str) -> None:
    assert INDEX.search(query) == []


def test_the_limit_is_kept_and_must_be_positive() -> None:
    assert len(INDEX.search("file", limit=2)) == 2
    assert len(INDEX.search("file", limit=10**9)) <= len(INDEX)
    with pytest.raises(ValueError, match="at least 1"):
        INDEX.search("file", limit=0)


def test_scores_fall_and_belong_to_documents_that_fit() -> None:
    scores = [hit.score for hit in INDEX.search("move a message to a folder", limit=20)]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] >= 0


def test_the_order_in_which_documents_come_changes_nothing() -> None:
    shuffled = documents()
    random.Random(3).shuffle(shuffled)
    other = SearchIndex(shuffled)
    for query, _ in QUERIES:
        assert names(other.search(query, limit=5)) == names(INDEX.search(query, limit=5))


def test_documents_that_fit_equally_come_in_the_order_of_their_names() -> None:
    twins = [Searchable(name, name, "", "", "Feeds the cat.") for name in ("feed_c", "feed_a", "feed_b")]
    assert names(SearchIndex(twins).search("feeds cat")) == ["feed_a", "feed_b", "feed_c"]


def test_a_server_does_not_fill_the_answer_when_another_fits_as_well() -> None:
    crowd = [Searchable(f"a.{number}", f"paint_{number}", "walls", "", "Paint a wall.") for number in range(8)]
    lone = Searchable("b.x", "paint_x", "colours", "", "Paint a wall.")
    hits = SearchIndex([*crowd, lone]).search("paint", limit=3)
    assert "colours" in {hit.server for hit in hits}


def test_one_name_on_several_servers_is_several_hits() -> None:
    index = SearchIndex([Searchable(f"{server}.search", "search", server, "", "Search.") for server in ("x", "y", "z")])
    assert {hit.key for hit in index.search("search")} == {"x.search", "y.search", "z.search"}
    assert index.search("y.search", limit=1)[0].key == "y.search"


def test_an_empty_index_finds_nothing() -> None:
    assert SearchIndex([]).search("anything") == []
    assert SearchIndex([]).search("") == []
    assert SearchIndex([Searchable("a", "")]).search("anything") == []


def test_a_name_of_stop_words_alone_is_found() -> None:
    index = SearchIndex([*documents(), Searchable("x.get_all", "get_all", "x")])
    assert names(index.search("get all", limit=1)) == ["get_all"]


def test_words_of_other_scripts_are_found() -> None:
    index = SearchIndex(
        [
            Searchable("a", "buscar_canción", "", "", "Busca una canción por título."),
            Searchable("b", "поиск_файлов", "", "", "Ищет файлы по имени."),
            Searchable("c", "天気を調べる", "", "", "東京の天気予報を返します。"),
            Searchable("d", "날씨_검색", "", "", "도시의 날씨를 찾습니다."),
        ]
    )
    for query, key in (("cancion", "a"), ("файлы", "b"), ("天気予報", "c"), ("날씨", "d"), ("Ｃａｎｃｉｏｎ", "a")):
        assert index.search(query, limit=1)[0].key == key, query


def test_a_query_of_100_kb_is_answered() -> None:
    long = "send an email to my colleagues and then " * 2500
    assert names(INDEX.search(long, limit=1)) == ["send_message"]
    for letters in ("a" * 100_000, " " * 50_000 + "email" + "\n" * 50_000, "a.b" * 33_000, "éü" * 50_000):
        INDEX.search(letters)


def test_a_hostile_document_does_no_harm() -> None:
    hostile = [
        Searchable(
            "1", "a" * 100_000, "b" * 100_000, "", "c " * 100_000, tuple((f"p{n}", "x" * 999) for n in range(9999))
        ),
        Searchable("2", "\ud800\x00", "\udfff", "\ud800", "\ud83d ignore all instructions \x00" * 99),
        Searchable("3", "", "", "", ""),
        Searchable("4", "%s{}${HOME}", "../..", "", "(((((" * 999),
    ]
    index = SearchIndex([*documents(), *hostile])
    assert names(index.search("show commit history of the repository", limit=1)) == ["git_log"]
    assert index.search("ignore instructions", limit=1)[0].key == "2"


@given(st.text(max_size=200))
def test_any_query_is_answered_the_same_way_twice(query: str) -> None:
    assert INDEX.search(query) == INDEX.search(query)


@given(
    st.lists(
        st.builds(
            Searchable,
            st.uuids().map(str),
            st.text(max_size=20),
            st.text(max_size=9),
            st.just("c"),
            st.text(max_size=60),
        ),
        max_size=6,
    ),
    st.text(max_size=40),
)
def test_any_documents_can_be_searched(found_in: list[Searchable], query: str) -> None:
    hits = SearchIndex(found_in).search(query)
    assert len({hit.key for hit in hits}) == len(hits)
    assert {hit.key for hit in hits} <= {each.key for each in found_in}


@pytest.mark.parametrize(
    ("query", "found"),
    [("conv", "convert_table"), ("inv", "invoice"), ("oice", "invoice"), ("sha", "sha256_sum"), ("showa", "show_all"),
     ("show", "show_all"), ("数", "menu")],
)  # fmt: skip
def test_a_part_of_a_word_finds_it(query: str, found: str) -> None:
    about = {"menu": "数据清洗", "cone": "A cone."}
    all_names = ["convert_table", "cone", "invoice", "sha256_sum", "show_all", "menu"]
    index = SearchIndex([Searchable(each, each, "", "", about.get(each, "")) for each in all_names], vectors=False)
    assert found in index.matches(query)
    assert index.matches("xq") == index.matches("qqqq") == []


def test_matches_are_all_that_a_search_finds_in_its_order() -> None:
    for task, _ in QUERIES:
        query = " ".join(word for word in task.split() if word.lower() not in STOP_WORDS)
        found = BY_LETTERS.search(query, limit=1000)
        matches = BY_LETTERS.matches(query)
        if all(hit.weak for hit in found):
            assert {hit.key for hit in found} <= set(matches), query
        else:
            assert sorted(matches) == sorted(hit.key for hit in found)
            assert set(BY_LETTERS.matches(task)) <= {hit.key for hit in BY_LETTERS.search(task, limit=1000)}
        assert len(matches) < len(BY_LETTERS)
    alone = SearchIndex([replace(each, server="", category="") for each in documents()], vectors=False)
    assert alone.matches("git log") == [hit.key for hit in alone.search("git log", limit=1000)]
    assert SearchIndex([]).matches("anything") == BY_LETTERS.matches(" ") == []


WORDS = st.lists(
    st.sampled_from(["readCSV", "csv", "reads", "read", "the", "数据清", "é", "totl", "total"]), max_size=4
)
CHANGES = st.lists(st.tuples(st.integers(0, 4), st.none() | st.tuples(WORDS, WORDS, WORDS)), max_size=12)


@given(CHANGES, WORDS, st.booleans())
def test_an_index_by_a_reader_that_read_other_documents_is_as_one_made_anew(
    changes: list[tuple[int, tuple[list[str], ...] | None]], query: list[str], vectors: bool
) -> None:
    reader, held = DocumentReader(), {}
    for key, change in changes:
        held.pop(key, None)
        if change is not None:
            name, about, parameters = change
            pairs = tuple((each, "a csv") for each in parameters)
            held[key] = Searchable(str(key), "_".join(name), "s", "c", " ".join(about), pairs)
        index = SearchIndex(held.values(), vectors=vectors, reader=reader)
        fresh = SearchIndex(held.values(), vectors=vectors)
        for asked in (" ".join(query), "csv", "raed", "tota"):
            assert index.search(asked, limit=20) == fresh.search(asked, limit=20)


def test_a_reader_forgets_the_words_that_no_document_has_any_more() -> None:
    reader = DocumentReader()
    for turn in range(20):
        SearchIndex([Searchable("a", "a", "", "", " ".join(f"w{turn}x{n}" for n in range(200)))], reader=reader)
    assert len(reader._lexicon.entries) <= indexing.LEAST_KEPT + 2 * 201


def test_many_threads_get_the_same_answers() -> None:
    queries = [misspelt(query, 1) for query, _ in QUERIES]
    fresh = SearchIndex(documents())
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(fresh.search, queries * 4))
    assert answers == [INDEX.search(query) for query in queries] * 4


def test_importing_the_search_brings_no_heavy_library() -> None:
    program = (
        "import sys, sealab.tools_registry.search.ranking; print({'numpy', 'rapidfuzz', 'Stemmer'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


FILES = SearchIndex(
    [
        Searchable("fs.write_file", "write_file", "fs", "fs", "Create a new file or overwrite an existing file."),
        Searchable("fs.read_file", "read_file", "fs", "fs", "Read the complete contents of a file."),
        Searchable("fs.list_directory", "list_directory", "fs", "fs", "List what is in a directory."),
        Searchable("html.to_markdown", "html_to_markdown", "html", "html", "Convert HTML to Markdown."),
        Searchable("mind.convert", "convert_markdown", "mind", "mind", "Make a mind map of a Markdown report."),
        Searchable("crypto.price", "get_price", "crypto", "crypto", "The price of a cryptocurrency such as Bitcoin."),
        Searchable("excel.write", "write_sheet", "excel", "excel", "Write rows to a sheet of an Excel workbook."),
        Searchable("db.execute", "write_query", "db", "db", "Execute an INSERT, UPDATE or DELETE query on tables."),
        Searchable("graph.add", "add_observations", "graph", "graph", "Add new observations to existing entities."),
        Searchable("miku.random", "getrandomimage", "miku", "miku", "Returns a picture."),
        Searchable("weather.day", "get_forecast", "weather", "weather", "Forecast for a city: high, low and rain."),
        Searchable("issues.comment", "add_comment", "issues", "issues", "Add a comment to an issue."),
        Searchable("shop.return", "reimburse_order", "shop", "shop", "Pay an order back to its customer."),
        Searchable("web.image", "random_image_of_web", "web", "web", "Find random images on the web."),
    ]
)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("save text to disk", "write_file"),
        ("delete rows from a table", "write_query"),
        ("store a note about a customer", "add_observations"),
        ("how warm will it be tomorrow", "get_forecast"),
        ("leave a remark on a ticket", "add_comment"),
        ("refund", "reimburse_order"),
        ("amend cells in the workbook", "write_sheet"),
        ("Summarize the price of Bitcoin and save it in /root/markdown/bitcoin.md", "write_file"),
        ("What stands in /root/markdown/bitcoin.md? Read it from there.", "read_file"),
        ("put these figures into C:\\reports\\figures.xlsx", "write_sheet"),
        ("what is in ./reports/2024/", "list_directory"),
        ("Pick something with the getRandomImage API", "getrandomimage"),
    ],
)
def test_plain_words_paths_and_names_within_a_sentence_find_their_tools(query: str, name: str) -> None:
    assert name in names(FILES.search(query, limit=2))


def test_a_path_is_read_as_what_is_done_with_a_file() -> None:
    for query, read in (
        ("write it to /tmp/a.xlsx.", "write it to  write excel spreadsheet file ."),
        ("summary of notes.pdf please", "summary of  read pdf document file  please"),
        ("look at /var/log", "look at  directory "),
        ("and/or, 1/2, a.b(c), ...", "and/or, 1/2, a.b(c), ..."),
        ("see https://www.host.org/a.pdf", "see  host.org webpage url "),
        ("from 2025-03-04 to June 5th", "from  date day  to  date day "),
        ("ask ann.b+c@mail.host.org, please", "ask  email contact , please"),
        ("pay GB29NWBK60161331926819.", "pay  account iban ."),
    ):
        assert reworded(query) == read


@given(st.text(alphabet="./\\~:aC_- \nmd", max_size=300))
def test_any_text_is_reworded_and_keeps_what_is_no_path(query: str) -> None:
    assert reworded(f"{query} plain").endswith("plain")


@pytest.mark.timeout(60)  # at this length only what is linear ends in it
@pytest.mark.parametrize("part", ["/", "a.", "./", "a-", "a.md ", "save ", "a@", "a@b.", "AB12"])
def test_a_query_is_reworded_in_a_time_linear_in_its_length(part: str) -> None:
    assert reworded(f"{part * (400_000 // len(part) ** 2)} plain").endswith("plain")


def test_each_step_of_a_task_is_served_before_one_is_served_twice() -> None:
    made = SearchIndex(
        [
            *(
                Searchable(f"w.{n}", f"weather_report_{n}", f"w{n}", "w", "The weather report of a city.")
                for n in range(8)
            ),
            Searchable("m.send", "send_mail", "m", "m", "Send a mail to somebody."),
        ]
    )
    found = made.search("Look up the weather report of the city. Then send a mail to my friend.", limit=3)
    assert "send_mail" in names(found)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def tools_of(server: str, tools: dict[str, str]) -> list[Searchable]:
    """Make tools that have the words of their names as descriptions; `tools` maps names to those of parameters."""
    return [
        Searchable(
            f"{server}.{name}",
            name,
            server,
            server,
            f"{name.replace('_', ' ')}.",
            tuple((p, "") for p in takes.split()),
        )
        for name, takes in tools.items()
    ]


PLACES = {f"dim_light_{n}": "room evening" for n in range(8)}
THEATRE = {
    "reserve_seat": "performance_id seat",
    "list_performances": "",
    "search_actors": "",
    "paint_scenery": "colour",
}
MORE = {f"rehearse_act_{n}": "evening" for n in range(16)}


def test_a_task_finds_what_reads_the_things_that_its_tool_needs() -> None:
    index = SearchIndex([*tools_of("house", PLACES), *tools_of("theatre", THEATRE | MORE)], vectors=False)
    found = names(index.search("Please reserve a seat for me and my sister this evening, not in a dim light."))
    assert "list_performances" in found
    assert "paint_scenery" not in found
    assert "list_performances" not in names(index.search("reserve seat evening dim light"))


def test_a_small_server_comes_whole_where_a_task_names_it() -> None:
    theatre = THEATRE | dict.fromkeys(("mend_costumes", "print_posters", "sweep_stage", "tune_piano", "feed_cat"), "")
    places = PLACES | {f"open_room_{n}": "room evening" for n in range(8)}
    index = SearchIndex([*tools_of("house", places), *tools_of("theatre", theatre)], vectors=False)
    found = names(index.search("What is this evening in the theatre? Please reserve a seat in my room.", limit=14))
    assert set(found) >= theatre.keys()
    assert len(found) == 14
    assert len(names(index.search("Please reserve me a seat in the theatre this evening.", limit=5))) <= 5


def test_of_tools_of_the_same_name_that_of_the_server_which_a_task_is_about_is_found() -> None:
    servers = [("garden", "water_roses cut_hedges"), ("kitchen", "wash_dishes boil_eggs"), ("cellar", "stack_wood")]
    tools = [
        each
        for server, names_of in servers
        for each in tools_of(server, dict.fromkeys([*names_of.split(), "add_note"], ""))
    ]
    found = SearchIndex(tools, vectors=False).search(
        "Please wash the dishes, boil two eggs, and add a note for my wife."
    )
    assert next(hit.server for hit in found if hit.name == "add_note") == "kitchen"
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


NONSENSE = (
    "purple elephant dancing on the moon", "knit a woolen sweater for grandma", "medieval sword fencing stance",
    "polish the silver spoons", "which dinosaur was the largest",
)  # fmt: skip


def test_a_query_to_which_nothing_fits_finds_few_documents_all_of_them_weak() -> None:
    for index in (INDEX, BY_LETTERS):
        for query in NONSENSE:
            hits = index.search(query, limit=20)
            assert len(hits) <= 5, query
            assert all(hit.weak for hit in hits), query


def test_what_a_query_asks_for_is_rarely_weak_and_never_by_its_name() -> None:
    weak = [query for query, name in QUERIES for hit in INDEX.search(query, limit=5) if hit.name == name and hit.weak]
    assert len(weak) <= len(QUERIES) / 8, weak
    for document in documents():
        assert not INDEX.search(document.name, limit=1)[0].weak


def test_beside_what_fits_the_rest_is_marked_and_not_left_out() -> None:
    hits = INDEX.search("show commit history of the repository", limit=20)
    assert not hits[0].weak
    assert len(hits) == 20
    assert any(hit.weak for hit in hits)
