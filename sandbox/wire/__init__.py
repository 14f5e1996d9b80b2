"""What crosses between host and worker, and what judges it. Both sides import it."""
