"""Names of people and places that are common where a script, or a language, is at home; lists of our own making."""
