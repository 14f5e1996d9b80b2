"""What other servers on the same database changed, as this one hears of it."""
