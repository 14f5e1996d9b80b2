"""`sealab tenants`: lists, shows, exports and deletes tenants."""

from .administering import add_to as add_to
