"""Titles before and after a person's name, which belong to no name: `Dr. Weber` and `Weber` are one person."""

from __future__ import annotations

import re

from .findings import Finding

# Those that are also words or names count with their point alone.
_BEFORE = re.compile(
    r"(?:(?:(?:Dr|Prof|Mr|Mrs|Ms|Mx|Sr|Sra|Srta|Dra|Sig|Dott|Mme|Mlle|Dhr|Mevr|dr|prof|mr|mrs|ms|DR|PROF|MR|MRS|MS)\.?"
    r"|(?:PD|M|MM|Mag|Ing|Lic|Arq|Avv|Rev|Hon|Doç|Öğr|Uzm|Uz|Av|Okt|Çev|Arş|Gör|Yrd|Sig\.ra|Dott\.ssa|Dr\.ssa|Dipl\.-Ing|Dipl\.-Kfm|Univ\.-?Prof|dhr|mevr|B\.Sc|M\.Sc)\."
    r"|Miss|Sir|Dame|Herrn?|Frau|Monsieur|Madame|Mademoiselle|Señora?|Señorita|Signora?|Signorina|Senhora?|Doutora?"
    r"|[Mm]evrouw|[Mm]eneer|[Pp]ani?|Bay|Bayan|Sayın"
    r"|[Гг]-н|[Гг]-жа|[Гг]-на|[Гг]осподин|[Гг]оспожа|[Пп]ан[іа]?|панна|[Дд]-р|тов\.|товарищ"
    r"|श्रीमती|श्रीमान|श्री|सुश्री|कुमारी|डॉ\.?|डा\.|माननीय|आदरणीय|पंडित"
    r"|السيدة|السيد|الأستاذة|الأستاذ|الدكتورة|الدكتور|المهندسة|المهندس|الآنسة|د\.|أ\.|م\.)[ \t\u00a0]{1,2}){1,4}"
)
_AFTER = re.compile(r"[ \u3000]?(?:様|さん|さま|殿|先生|女士|小姐|님|씨)\Z| (?:जी|साहब)\Z")
_LONGEST_AFTER, _FEWEST_LETTERS = 4, 2


def without_titles(text: str, finding: Finding) -> Finding:
    """Return a person's finding without the titles that it begins or ends with, unless nothing else is in it."""
    start, end = finding.start, finding.end
    if before := _BEFORE.match(text, start, end):
        start = before.end()
    if not text[end - 1].isascii() and (after := _AFTER.search(text, max(start, end - _LONGEST_AFTER), end)):
        end = after.start()
    if (start, end) == (finding.start, finding.end) or sum(map(str.isalpha, text[start:end])) < _FEWEST_LETTERS:
        return finding
    return Finding(start, end, finding.type, finding.score)
