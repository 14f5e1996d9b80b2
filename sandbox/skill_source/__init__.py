"""What source says of itself, told without running it: the facts of a skill that somebody wants to save.

This runs in a worker, since hostile source can kill a parser; what comes up is JSON that the host judges anew.
"""
