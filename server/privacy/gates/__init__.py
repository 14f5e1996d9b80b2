"""What leaves the server passes here, with tokens in place of personal data."""
