"""`sealab vault`: gives the vault another key, while servers run."""

from __future__ import annotations

import json

from ....skills_db.vault_root import is_wrapped
from ...base.errors import Exit, UsageError
from ...privacy.tokens.keys import rotate as rotated
from ...use_cases.tenants.contents import operators_database
from .command import AuditedAs, Group
from .terminal import Here, Output, print_error

vault = Group()


@vault.command(audit=AuditedAs("key.rotated"))
def rotate(here: Here) -> Output | int:
    """Give the vault, journals, sign-ins and the audit log another key, of which those of tenants are derived.

    Servers that run go on. A key that VAULT_KEY gives is printed, this once, to be put in its place.
    """
    if here.names_tenant:
        raise UsageError("Keys of tenants follow from the operator's. Leave --tenant out.")

    def show(key: str) -> None:
        print(json.dumps({"rotated": True, "key": key}) if here.json else key, flush=True)

    with operators_database(here.settings, here.home) as database:
        was_wrapped = is_wrapped(database)
        where = rotated(here.settings, here.home.root, database, show)
    here.audit_details["was_wrapped"] = was_wrapped

    if not was_wrapped:
        print_error(
            "sealab: This vault was made by an earlier version, whose key seals its values itself. Keep the old key "
            "secret as long as there are copies of the database."
        )
    if where is None:
        print_error(
            "sealab: The vault has the key that was printed. Set VAULT_KEY to it before a server starts again; it is "
            "not kept and not shown again."
        )
        return Exit.OK
    message = f"The vault has a new key, in {where}. The one before opens it no more."
    return Output({"rotated": True, "kept_in": where}, message)
