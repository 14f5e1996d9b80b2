"""What is done: runs, what running code asks of the host, calls of upstream tools, skills, the journal."""
