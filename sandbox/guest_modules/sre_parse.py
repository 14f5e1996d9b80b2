"""`sre_parse` as guest code: the parser of regular expressions under its old name."""

from re._parser import *
