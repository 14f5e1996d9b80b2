"""The groups of commands of the command line."""
