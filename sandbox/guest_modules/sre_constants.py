"""`sre_constants` as guest code: the constants of regular expressions under their old name."""

from re._constants import *
