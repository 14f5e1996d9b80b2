"""What each caller and each tenant may use of the server, and what they have used."""
