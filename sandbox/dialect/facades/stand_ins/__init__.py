"""Replacements for members of standard modules: one module for each."""
