"""`sealab policy`: the rules of a policy, checked, explained and tested."""

from .explaining import add_to as add_to
