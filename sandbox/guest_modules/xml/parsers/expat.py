"""`xml.parsers.expat` without its tables of error messages and models, which name no more than numbers."""

from pyexpat import *
