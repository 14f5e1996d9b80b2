"""Speaks MCP: the tools, their schemas, and the streams they are served on."""
