"""Speaks MCP and the command line, and wires the parts."""
