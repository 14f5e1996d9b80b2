"""Pages for people at `/console`: what runs, waits and happened, and the acts of an operator.

Written by the server from templates, without scripts. What they show is what the commands list.
"""
