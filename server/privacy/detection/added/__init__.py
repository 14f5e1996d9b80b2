"""Recognizers of Presidio that the operator adds to ours, by a file in its format or by installed packages."""
