"""What `re._constants` asks of `_sre`, as guest code: the bounds of the engine, the same in every version here."""

MAXREPEAT = 4294967295
MAXGROUPS = 1073741823
