"""What all servers on one database share beside skills, vault and journals: documents, notices, and parts of bounds."""
