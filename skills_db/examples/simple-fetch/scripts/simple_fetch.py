"""The shortest skill that calls a tool: a beginning for skills of your own."""


async def simple_fetch(url: str, max_length: int = 5000) -> dict:
    """Fetch a page by the upstream server fetch, and return its text with how long it is.

    Args:
        url: The address of the page.
        max_length: How many characters to fetch at most.

    Returns:
        {url, characters, words, text}
    """
    answer = await tools.fetch.fetch(url=url, max_length=max_length)
    text = answer if isinstance(answer, str) else "\n".join(map(str, answer))
    return {"url": url, "characters": len(text), "words": len(text.split()), "text": text}


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, 'Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: async simple_fetch(url: str, max_length: int = 5000) -> dict'
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in ['url'] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(__import__('asyncio').run(simple_fetch(**_given)), default=repr, ensure_ascii=False))
