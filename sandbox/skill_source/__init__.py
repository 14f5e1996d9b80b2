"""What source says of itself, read without running it: the facts of a skill that is to be saved.

This runs in a worker, since hostile source can kill a parser; what comes up is JSON that the host judges anew.
"""
