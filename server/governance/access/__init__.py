"""Who is calling: what tells whom a bearer token stands for, and what asks for one."""
