"""`sealab tokens`: gives out, lists and revokes the tokens that `AUTH=tokens` asks for."""

from .giving_out import add_to as add_to
