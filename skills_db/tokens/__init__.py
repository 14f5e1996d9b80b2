"""The bearer tokens that this server gave out."""

from .token_store import MARK_CHARS as MARK_CHARS
from .token_store import USED_SECONDS as USED_SECONDS
from .token_store import StoredToken as StoredToken
from .token_store import TokenStore as TokenStore
