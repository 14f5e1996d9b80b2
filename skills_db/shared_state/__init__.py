"""What servers on one database share beside skills, vault and journals: documents, notices, parts of bounds, history."""
