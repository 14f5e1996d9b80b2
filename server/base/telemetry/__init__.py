"""OpenTelemetry: spans and measurements of what is done, never of what it is about. Off, it imports nothing."""
