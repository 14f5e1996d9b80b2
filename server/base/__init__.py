"""What all stand on: settings, home, database, files, errors, statistics."""
