async def test_a_page_is_fetched_and_counted():
    told = await simple_fetch("https://example.com", max_length=100)
    assert told == {"url": "https://example.com", "characters": 14, "words": 2, "text": "Example Domain"}
