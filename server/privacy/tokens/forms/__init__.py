"""The other forms in which a known value may stand: case, accents, joins, initials, digits, dates, escapes, base 64."""
