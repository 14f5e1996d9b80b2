"""Where the values of calls come from, and which of them name whom a call reaches, where, and how much it moves."""
