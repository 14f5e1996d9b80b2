"""`sealab data`: the environment in which full Python has numpy, pandas and the like."""

from .environment_status import add_to as add_to
