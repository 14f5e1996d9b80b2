"""What `sealab demo` shows, and the upstream servers that it uses."""
