"""What comes in and goes out: MCP, the command line, the guard, and who is served by which tenant."""
