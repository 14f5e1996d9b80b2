"""Find personal data in texts and in structured values.

A security boundary: what is not found here is shown to the model. Whatever goes wrong inside becomes
`DetectionFailed`, so that a caller can only fail closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import regex

from .findings import ENTRY_POINTS, THING, TYPE_NAME, DetectionFailed, Finding, KeyedText, PiiType, TableFindings
from .fitting import Allowed, disjoint, fitted, same_values, without_names_of_code
from .keys import KEYS_OF_THINGS, LIKELY, FieldVerdict, in_words, judge
from .recognizers.addresses import addresses
from .recognizers.identifiers import births, identifiers
from .recognizers.keyed_values import assignments, json_pairs, lines
from .recognizers.latin_prose import latin_prose
from .recognizers.numbers import (
    cards,
    devices,
    fixed_widths,
    ibans,
    national_numbers,
    social_security_numbers,
    wallets,
)
from .recognizers.people import accounts, emails, handles, people
from .recognizers.phones import phones
from .recognizers.secrets import long_secrets, secrets
from .recognizers.spaced_prose import spaced_prose
from .recognizers.tables import markup, sql_rows, tables
from .recognizers.unspaced_prose import unspaced_prose
from .samples import ColumnFinder, LogFinder, is_log
from .scripts import parted, readable

if TYPE_CHECKING:
    from presidio_analyzer import EntityRecognizer

    from .added import AddedRecognizers
    from .ner.prose import NamesInProse

Find = Callable[[str], Iterable[Finding]]

_OWN_PATTERN_SECONDS: Final = 2.0


class Recognizer(NamedTuple):
    """A function that finds, the types that it may yield, and how it looks.

    `is_latin`: it looks for forms of Latin letters and digits, which letters of unspaced scripts do not belong to.
    `is_far`: to a table's headings, to the keys around an object, to the end of a private key.
    """

    find: Find
    types: frozenset[str]
    is_latin: bool
    is_far: bool


def _recognizer(find: Find, types: str, *, is_latin: bool = False, is_far: bool = False) -> Recognizer:
    return Recognizer(find, frozenset(types.split()), is_latin, is_far)


_ANY = " ".join([*PiiType, THING])
RECOGNIZERS = (
    _recognizer(secrets, "SECRET", is_latin=True),
    _recognizer(long_secrets, "SECRET", is_latin=True, is_far=True),
    _recognizer(emails, "EMAIL", is_latin=True),
    _recognizer(cards, "CARD", is_latin=True),
    _recognizer(ibans, "IBAN", is_latin=True),
    _recognizer(fixed_widths, "IBAN CARD", is_latin=True),
    _recognizer(social_security_numbers, "SSN TAX_ID", is_latin=True),
    _recognizer(national_numbers, "NATIONAL_ID TAX_ID", is_latin=True),
    _recognizer(wallets, "CRYPTO", is_latin=True),
    _recognizer(devices, "IP MAC", is_latin=True),
    _recognizer(phones, "PHONE", is_latin=True),
    _recognizer(identifiers, "PASSPORT DRIVING_LICENCE MEDICAL TAX_ID SSN BANK NATIONAL_ID DOB ZIP"),
    _recognizer(addresses, "ADDRESS ZIP LOCATION", is_latin=True),
    _recognizer(accounts, "USERNAME", is_latin=True),
    _recognizer(people, "PERSON USERNAME PHONE ADDRESS DOB"),
    _recognizer(handles, "PERSON USERNAME"),
    _recognizer(json_pairs, _ANY, is_far=True),
    _recognizer(assignments, _ANY),
    _recognizer(lines, _ANY),
    _recognizer(markup, _ANY, is_far=True),
    _recognizer(tables, _ANY, is_far=True),
    _recognizer(sql_rows, _ANY, is_far=True),
    _recognizer(births, "DOB"),
    _recognizer(latin_prose, "PERSON LOCATION"),
    _recognizer(unspaced_prose, _ANY),
    _recognizer(spaced_prose, "PERSON LOCATION ADDRESS"),
)


def _own_pattern(name: str, pattern: str) -> Find:
    """Return a function that finds an operator's own pattern; it raises `TimeoutError` rather than take seconds."""
    compiled = regex.compile(pattern)
    group = 1 if compiled.groups else 0

    def find(text: str) -> Iterator[Finding]:
        for match in compiled.finditer(text, timeout=_OWN_PATTERN_SECONDS):
            if match.end(group) > match.start(group) >= 0:
                yield Finding(match.start(group), match.end(group), name, 1.0)

    return find


_COLUMNS = frozenset(("columns", "column_names", "columnnames", "headers", "header", "fields", "cols", "schema"))
_ROWS = frozenset(("rows", "values", "data", "records", "results", "items"))
_NAMES = frozenset(("name", "label", "title", "field", "columnname", "column_name"))
_HEADING = re.compile(r"[^\W\d][\w .()/#'-]{0,40}")
_FEWEST_COLUMNS = 2
_Path = tuple[str, ...]


def _headed(leaves: Sequence[tuple[_Path, str]]) -> list[_Path]:
    """Return the path of each leaf, with the heading of its column in place of its number where it stands in a row."""
    named: dict[_Path, dict[str, str]] = {}
    first_rows: dict[_Path, dict[str, str]] = {}
    for path, text in leaves:
        if len(path) >= _FEWEST_COLUMNS and path[-1].isdecimal() and path[-2].lower() in _COLUMNS:
            named.setdefault(path[:-2], {})[path[-1]] = text
        elif path[-3:-2] and path[-3].lower() in _COLUMNS and path[-2].isdecimal() and path[-1].lower() in _NAMES:
            named.setdefault(path[:-3], {})[path[-2]] = text
        elif path[-2:-1] == ("0",) and path[-1].isdecimal():
            first_rows.setdefault(path[:-2], {})[path[-1]] = text
    tables = {
        path: row
        for path, row in first_rows.items()
        if len(row) >= _FEWEST_COLUMNS and all(_HEADING.fullmatch(readable(name)) for name in row.values())
    }
    if not named and not tables:
        return [path for path, _ in leaves]
    return [_with_heading(path, named, tables) for path, _ in leaves]


def _with_heading(path: _Path, named: dict[_Path, dict[str, str]], tables: dict[_Path, dict[str, str]]) -> _Path:
    if len(path) < _FEWEST_COLUMNS or not (path[-1].isdecimal() and path[-2].isdecimal()):
        return path
    rows = path[:-2]
    headings = named.get(rows[:-1]) if rows and rows[-1].lower() in _ROWS else None
    if headings is None and path[-2] != "0":
        headings = tables.get(rows)
    heading = headings.get(path[-1]) if headings else None
    return (*rows, heading) if heading else path


_NEAR_CHARS, _FAR_CHARS = (49_152, 4_096), (262_144, 16_384)
"""Characters of a block, and by how many it reaches into the next one."""
_LONGEST_LABEL, _LABEL_KEYS = 48, 2
_POSTAL = frozenset((PiiType.ADDRESS, PiiType.LOCATION, PiiType.ZIP))
_SURE_ADDRESS = 0.8


class Mode(StrEnum):
    """How much is spent on a text: rules alone, or also the small model that finds names and addresses in prose."""

    FAST = "fast"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class DetectorOptions:
    """What the operator decides about detection.

    `types`: only these are looked for; empty means all.
    `threshold`: findings scored lower are dropped; `thresholds` says so by type.
    `allow`: values that are never personal: an exact value, or `/regex/` that must match the whole value. Of a name, a
    place or an address they may also be a part, the latter a word.
    `patterns`: own types, name to regular expression; what group 1, if there is one, else the whole match, covers.
    `recognizers`: recognizers of Presidio that are asked beside ours, as `added` makes them.
    """

    mode: Mode = Mode.BALANCED
    types: frozenset[str] = frozenset()
    threshold: float = 0.4
    thresholds: Mapping[str, float] = field(default_factory=dict)
    allow: Sequence[str] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)
    recognizers: Sequence[EntityRecognizer] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for a pattern or a name that cannot be used, at start rather than in the middle."""
        for name, pattern in self.patterns.items():
            if not TYPE_NAME.fullmatch(name):
                raise ValueError(f"the type {name!r} is not made of upper-case letters and underscores")
            _compiled(pattern)
        for allowed in self.allow:
            if _is_expression(allowed):
                _compiled(allowed[1:-1])
        unknown = self.types - self.known_types
        if unknown:
            known = ", ".join([*PiiType, *sorted(self.known_types - set(PiiType))])
            raise ValueError(f"{', '.join(sorted(unknown))} is not a type; the types are {known}")

    @property
    def known_types(self) -> frozenset[str]:
        """All types that can be found."""
        added = {_own_name(entity) for each in self.recognizers for entity in each.supported_entities}
        return frozenset((*PiiType, *self.patterns, *added))


class Detector:
    """Finds personal data, for one thread at a time, which a call keeps busy: the server asks it in readers.

    Nothing heavy is loaded before the first call or `warm()`.
    """

    def __init__(self, options: DetectorOptions | None = None) -> None:
        self.options = options or DetectorOptions()
        self._own = [_own_pattern(name, pattern) for name, pattern in self.options.patterns.items()]
        self._added: AddedRecognizers | None = None
        self._names: NamesInProse | None = None
        self._is_loaded = False
        self._columns = ColumnFinder(self)
        self._logs = LogFinder(self)
        self._allowed = Allowed(
            (value for value in self.options.allow if not _is_expression(value)),
            [_compiled(value[1:-1]) for value in self.options.allow if _is_expression(value)],
        )

    @property
    def is_plain(self) -> bool:
        """Whether it looks for nothing that the operator added, which may be in one text of a form and not the next."""
        return not self.options.patterns and not self.options.recognizers

    def warm(self) -> None:
        """Load whatever the mode needs, seconds of work; raises `DetectionFailed`."""
        self.find("Warm up: jane.doe@example.org, +49 30 1234567, Jane Doe.")

    def find(self, text: str) -> list[Finding]:
        """Return what is personal in `text`, in order, disjoint; offsets count characters (code points).

        Any text is allowed: lone surrogates, NUL, lines of a million characters.
        Raises `DetectionFailed`; then nothing is known about the text and it must not be shown.
        """
        return self._closed(text, ())

    def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]:
        """Return the findings of each leaf, offsets within that leaf's own text.

        The way for structured values (JSON, the cells of a table): one pass over all leaves together, so that keys
        give types (a leaf below `customer_name` is a person), neighbours give context, and a value found in one leaf
        is found in all. Numbers are passed as their text. Keys that may be personal themselves are passed as leaves
        of their own with an empty path.
        A long log, alone and without keys, is looked through by its records.
        Raises `DetectionFailed`.
        """
        if len(leaves) == 1 and not leaves[0].path and self.is_plain and is_log(leaves[0].text):
            return [self._logs.find(leaves[0].text)]
        paths = _headed([(leaf.path, leaf.text) for leaf in leaves])
        things = {path[:-1] for path in paths if path and path[-1].lower() in KEYS_OF_THINGS}
        pieces: list[str] = []
        starts: list[int] = []
        by_keys: list[Finding] = []
        at = 0
        for leaf, path in zip(leaves, paths, strict=True):
            # Laid out as lines of a form: the words before a value are its context, as in any text.
            label = _label(path)
            pieces += (label, leaf.text, "\n")
            at += len(label)
            starts.append(at)
            by_keys += _found_by_keys(path, leaf.text, at, is_thing=path[:-1] in things)
            at += len(leaf.text) + 1
        findings = self._closed("".join(pieces), by_keys)
        return list(_by_leaf(leaves, starts, findings))

    def find_column(self, path: tuple[str, ...], texts: Sequence[str], headings: Sequence[str] = ()) -> TableFindings:
        """Return what is personal in different cells of a column below a path; see `samples`. Raises `DetectionFailed`.

        `headings` are those of all columns of the table.
        """
        return self._columns.find(path, texts, headings)

    def _closed(self, text: str, by_keys: Sequence[Finding]) -> list[Finding]:
        try:
            self._load()
            return self._find(text, by_keys)
        except DetectionFailed:
            raise
        except Exception as error:
            raise DetectionFailed(
                f"Personal data could not be looked for ({type(error).__name__}), so the text is withheld. "
                "Try a smaller or simpler text; if that fails too, report it."
            ) from error

    def _load(self) -> None:
        if self._is_loaded:
            return
        if self.options.mode is Mode.BALANCED:
            from .ner.prose import NamesInProse

            self._names = NamesInProse()
        if self.options.recognizers:
            from .added import added_recognizers

            self._added = added_recognizers(self.options.recognizers)
        self._is_loaded = True

    def _find(self, text: str, by_keys: Sequence[Finding]) -> list[Finding]:
        by_rules = without_names_of_code(text, self._by_rules(text))
        found = disjoint(text, self._kept(text, [*by_keys, *by_rules]))
        if self._names is not None:
            by_model = without_names_of_code(text, self._names.find(text, _settled(found)))
            found = disjoint(text, self._kept(text, [*found, *by_model]))
        found = sorted([*found, *self._kept(text, same_values(text, found))])
        wanted = self.options.types
        return [each for each in found if (each.type in wanted if wanted else each.type != THING)]

    def _by_rules(self, text: str) -> list[Finding]:
        """Run the recognizers over blocks that overlap by more than anything personal is long, so no seam cuts it."""
        words = readable(text)
        apart = parted(words)
        results: list[Finding] = []
        for each in RECOGNIZERS:
            reach = _FAR_CHARS if each.is_far else _NEAR_CHARS
            results += _by_blocks(each.find, apart if each.is_latin else words, *reach)
        for own in self._own:
            results += _by_blocks(own, text, *_NEAR_CHARS)
        if self._added is not None:
            results += self._added.find(text)
        return results

    def _kept(self, text: str, findings: Sequence[Finding]) -> list[Finding]:
        options = self.options
        return [
            part
            for each in fitted(text, findings)
            if each.score >= options.thresholds.get(each.type, options.threshold)
            for part in self._allowed.remaining(text, each)
        ]

    def keeps(self, kind: str, score: float, value: str) -> bool:
        """Return whether a finding of that type and score that is the whole of a value counts, and is hidden whole."""
        return self.kept_of(kind, score, value) == [Finding(0, len(value), kind, score)]

    def kept_of(self, kind: str, score: float, value: str) -> list[Finding]:
        """Return what of a value, which was found as a whole, counts and is hidden."""
        if self.options.types and kind not in self.options.types:
            return []
        return self._kept(value, [Finding(0, len(value), kind, score)])


def _by_blocks(find: Find, text: str, block: int, seam: int) -> Iterator[Finding]:
    for start in range(0, max(len(text) - seam, 1), block):
        found = find(text[start : start + block + seam])
        yield from (Finding(f.start + start, f.end + start, f.type, f.score) for f in found) if start else found


def recognizers_of_file(file: Path) -> list[EntityRecognizer]:
    """Return the recognizers of a file. Raises `ValueError`, which says where and what to do."""
    from .added import read_recognizers

    return read_recognizers(file)


def added_recognizers(file: Path | None) -> tuple[EntityRecognizer, ...]:
    """Return the recognizers that the operator added, by a file and by installed packages. Raises `DetectionFailed`."""
    from importlib.metadata import entry_points

    try:
        of_file = recognizers_of_file(file) if file is not None else []
        if not entry_points(group=ENTRY_POINTS):
            return tuple(of_file)
        from .added import installed_recognizers

        return (*of_file, *installed_recognizers(ENTRY_POINTS))
    except ValueError as error:
        raise DetectionFailed(f"Nothing can be looked for, so every text is withheld. {error}") from error


def _settled(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that the model need not look at; of addresses it may know more than the rules."""
    return [each for each in findings if each.type not in _POSTAL or each.score > _SURE_ADDRESS]


def _label(path: tuple[str, ...]) -> str:
    """Return what is written before a leaf: its key, and the one above, which says whose name `name` is.

    In lower case, since `Order Status:` at the start of a line could name a speaker.
    """
    keys = [in_words(key) or key.lower() for key in path if key and not key.isdecimal()][-_LABEL_KEYS:]
    if not keys:
        return ""
    whole = " ".join(keys)
    return f"{whole if len(whole) <= _LONGEST_LABEL else keys[-1][:_LONGEST_LABEL]}: "


def _found_by_keys(path: tuple[str, ...], text: str, at: int, *, is_thing: bool) -> list[Finding]:
    """Return what follows from the keys of a leaf for the whole of it; a name beside a price is not a person's."""
    value = text.strip()
    verdict = judge(path, value)
    if verdict is None or (is_thing and verdict == FieldVerdict(PiiType.PERSON, LIKELY)):
        return []
    start = at + len(text) - len(text.lstrip())
    return [Finding(start, start + len(value), verdict.type, verdict.score)]


def _by_leaf(leaves: Sequence[KeyedText], starts: Sequence[int], findings: Sequence[Finding]) -> list[list[Finding]]:
    """Give each leaf what lies in it; a finding that reaches over a border is cut there."""
    each: list[list[Finding]] = []
    index = 0
    for leaf, start in zip(leaves, starts, strict=True):
        end = start + len(leaf.text)
        mine: list[Finding] = []
        while index < len(findings) and findings[index].end <= start:
            index += 1
        at = index
        while at < len(findings) and findings[at].start < end:
            found = findings[at]
            mine.append(Finding(max(found.start, start) - start, min(found.end, end) - start, found.type, found.score))
            at += 1
        each.append(mine)
    return each


def _own_name(entity: str) -> str:
    from .added import own_name

    return own_name(entity)


def _is_expression(allowed: str) -> bool:
    return len(allowed) > len("//") and allowed.startswith("/") and allowed.endswith("/")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
