"""`sealab audit`: what stands in the audit log, and whether it was changed."""

from .reading import add_to as add_to
