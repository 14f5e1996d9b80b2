"""What a worker's own code knows of its guest: its channel, what it made, and what kind of Python it is."""
