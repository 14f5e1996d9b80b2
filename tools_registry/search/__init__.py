"""Finds tools by what they do, ranked."""
