"""Signs callers in to this server: whom a bearer token stands for, and what asks for one."""
