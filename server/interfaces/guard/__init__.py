"""The privacy filter before any MCP server, without code: `sealab guard`."""
