"""Which verifier the setting `AUTH` asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import Auth
from .own_tokens import OwnTokens

if TYPE_CHECKING:
    from ..database import HomeDatabase
    from ..settings import Settings
    from .verifier import Verifier


def verifier_of(settings: Settings, database: HomeDatabase) -> Verifier | None:
    """Return what tells whom a token stands for; None where nobody is authenticated. Raises `SettingsError`."""
    match settings.auth:
        case Auth.OFF:
            return None
        case Auth.TOKENS:
            return OwnTokens(database)
        case Auth.OAUTH:
            from .oauth_verifier import OAuthVerifier

            return OAuthVerifier(settings)
