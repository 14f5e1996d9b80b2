"""What code can call: tools, skills, files, privacy and data."""
