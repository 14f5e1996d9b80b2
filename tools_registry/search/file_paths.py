"""Reads the paths of files in a query as what is done with a file: `save it to /tmp/a.xlsx` as `write excel file`.

The folders and the name in a path say nothing of the tool that is wanted, and its words mislead: a report that is saved
below `/root/markdown/` needs no tool for Markdown.
"""

from __future__ import annotations

import re

# What a file is by its ending; a plain text is a file and nothing else.
_KINDS = """
    md txt log rst:
    csv tsv: csv
    xls xlsx xlsm: excel spreadsheet
    ppt pptx: powerpoint presentation
    doc docx odt: word document
    pdf: pdf document
    png jpg jpeg gif svg webp bmp: image
    mp3 wav flac m4a: audio
    mp4 mov avi mkv webm: video
    zip tar gz: archive
    db sqlite: database
    json: json
    yaml yml: yaml
    xml: xml
    html htm: html
    py js ts java c cpp rs go sh ipynb: code
"""
_KIND_OF = {
    ending: kind.strip()
    for line in _KINDS.strip().splitlines()
    for endings, _, kind in [line.partition(":")]
    for ending in endings.split()
}
_BEFORE_CHARS = 40
_SENTENCE_END = re.compile(r"[.!?;]\s")
_WRITES = re.compile(
    r"\b(?:saved?|saving|write|writing|written|store|export|put|output|create|generate|make|into|to|as|in|at|under)\b",
    re.IGNORECASE,
)
_READS = re.compile(r"\b(?:read|open|load|parse|analy[sz]e|summari[sz]e|from|of|using|my|this|these)\b", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w:/.\\-])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.\\/\-]{0,300}\w"  # one with folders
    rf"|(?<![\w/@.\-])[\w\-]{{1,100}}\.(?:{'|'.join(_KIND_OF)})\b(?![\w(])",  # or the bare name of a file
    re.IGNORECASE,
)


_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?\b"
_VALUE_SIGNS = re.compile(r"[./\d]")
# Dates and addresses of pages, people and accounts are values; what is wanted takes such a value. An address of a page
# keeps its host.
_VALUES = (
    (re.compile(r"(?<![\w.@+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,4}+"), " email contact "),
    (re.compile(r"\b[A-Z]{2}\d{2}[A-Z\d]{11,30}+\b"), " account iban "),
    (re.compile(r"(?<![\w.])(?:https?://(?:www\.)?|www\.)([\w.-]++)[^\s'\",;)]*+", re.IGNORECASE), r" \1 webpage url "),
    (re.compile(rf"\b(?:\d{{4}}-\d\d-\d\d\b|{_MONTH} {_DAY}|{_DAY} (?:of )?{_MONTH})", re.IGNORECASE), " date day "),
)


def reworded(query: str) -> str:
    """Return the query with words for what kind of thing it is in the place of each path, page, date and address.

    A path becomes `write` or `read`, what kind of file, and `file`.
    """
    if not _VALUE_SIGNS.search(query):
        return query
    for value, kind in _VALUES:
        query = value.sub(kind, query)
    parts, last = [], 0
    for found in _PATH.finditer(query):
        near = query[max(0, found.start() - _BEFORE_CHARS) : found.start()]
        parts += [query[last : found.start()], " ", _words_of(found[0], near), " "]
        last = found.end()
    return "".join([*parts, query[last:]])


def _words_of(path: str, before: str) -> str:
    name = re.split(r"[/\\]", path)[-1]
    if "." not in name:
        return "directory"
    kind = _KIND_OF.get(name.rpartition(".")[2].lower(), "")
    return f"{_done(before)} {kind} file"


def _done(before: str) -> str:
    """Return what the words before a path do with it, those nearest to it first; nothing where they do not say."""
    near = _SENTENCE_END.split(before)[-1]
    writes, reads = (max((each.start() for each in words.finditer(near)), default=-1) for words in (_WRITES, _READS))
    return "write" if writes > reads else "read" if reads > writes else ""
