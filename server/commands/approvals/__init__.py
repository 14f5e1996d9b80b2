"""`sealab approvals`: the questions that background runs wait with, and their answers."""

from .answering import add_to as add_to
