"""What servers on one database share beside skills, vault, journals: documents, notices, parts of bounds, history."""
