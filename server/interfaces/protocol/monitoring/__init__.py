"""What monitoring systems read of a server over HTTP."""
