"""The server's instructions for a client's model."""

from __future__ import annotations

INSTRUCTIONS = """\
sealab runs Python in a sandbox: no network, no disk but the workspace (open, write_file, read_file). Prefer one \
execute_code program over many small steps; return only what you need as `result`. Other MCP servers are reached from \
code: search_tools(query, detail_level="signature") tells what a call needs, `await tools.<server>.<tool>(**args)` \
calls it. Each call is fresh unless session="name" is given.

Make many calls at once with asyncio.gather; a failed one raises ToolError. Tools not declared read-only need the \
user's yes, if the client can ask; dry_run=true only notes calls. A failed run is an ordinary report: correct it by \
error.hint. `truncated` says how to read what was cut. What is worth keeping becomes a skill: save_skill, then \
skills.<name>(…).
"""

PRIVATE = """
Code holds real personal data, and you see a token such as [EMAIL_k3v9q2m8xa] for each value. A token that you write \
in code or in context_vars is its value there, so compare it with values, and pass it to tools and files as it is.
"""
"""What is added where everything is filtered (`PRIVACY=auto`)."""

PROGRAM = """\
Do this with one program in sealab: {task}

1. Find the tools that it needs: search_tools(query, detail_level="signature").
2. Write a program for execute_code that calls them, many at once with asyncio.gather, works on what they return, and \
gives back only what answers.
3. If it changes something, run it with dry_run=true first and say what it would do.
"""
"""The text of a prompt for a user: a task that is to be done by a program."""

SKILL = """\
Save what you just did in sealab as the skill {name}: a function of that name with type hints, a docstring that says \
what it does, and parameters for what may differ next time. Give save_skill tests, as asserts. Then run it once.
"""
"""The text of a prompt for a user: code that worked is to be kept."""

CAPABILITIES = """\
Available without import: json re math datetime statistics collections itertools functools random string decimal \
fractions asyncio
Tools: await tools.<server>.<tool>(**arguments) calls an upstream MCP tool and returns its structured content, else \
parsed JSON, else text; await call_tool("<server>.<tool>", {{…}}) does by name; \
save_to="name" on either has the answer become a workspace file; where one server alone has a tool, \
await tools.<tool>(…) finds it; ToolError has the server's message
Discovery: search_tools(query, category=None, detail_level="summary", limit=None), get_tool_definition(tool_name), \
list_servers(); of a picture or file a tool gives a handle, which read_file(handle, encoding=None) reads
Resources: read_resource(server, uri), list_resources(server), list_prompts(server)
Aliases: mcp_<server>, mcp_servers["<server>"], from mcp import runtime (discovered_servers list_servers \
query_tool_docs search_tool_docs describe_server capability_summary, and their _sync forms)
Skills: skills.<name>(…), from skills import <name>, save_skill(name, code), load_skill(name), list_skills(query=None)
Privacy: sanitize_pii(text), restore_pii(text)
Importable: the data modules of the standard library ({modules})
Workspace: read_file(filename, offset=0, limit=None, encoding="utf-8") -> str (encoding=None: bytes), \
write_file(filename, content) (tokens=True keeps tokens of personal data), list_files(subpath="."), \
delete_file(filename); open, pathlib, os, shutil, tempfile, sqlite3, zipfile see it as the current directory
Data: summarize_list(data, limit=10) -> {{count, sample}}, filter_by_field(data, field, value), \
aggregate_stats(data, numeric_fields=None) -> {{count, <field>_sum, _avg, _min, _max}}, \
format_output(data, max_chars=5000)
Result: the variable `result` if the code set it, else the value of the last expression; print() is kept beside it
Async: top-level await works; asyncio.gather, sleep, wait_for, create_task, Queue, Semaphore
Sessions: execute_code(session="name") keeps variables, functions and imports from call to call, as in a REPL; \
list_sessions(), close_session(name)
Progress: progress(fraction, message="") tells the client how far the code is, from 0 to 1
Display: display(value) shows a value, table or figure in the report beside the result, in order
Not available: network, files outside the workspace, processes, native modules; threads run one at a time
{full_python}\
Limits of a call: {timeout_seconds:g} s (at most {max_timeout_seconds:g}), {memory_mb} MB (at most {max_memory_mb}), \
{tool_calls_max} calls to the host
"""

FULL_PYTHON = """\
Full Python ({asked}): every import, installed packages such as numpy (a program that imports one runs there by \
itself), threads; the workspace is the current directory, and what code writes there is kept once the run ends well \
(in a container it is read-only at /workspace, and keep(path, name) copies a file into it); matplotlib figures shown \
or left open come back as images; a DataFrame as result is shown with its types, and a large one becomes a parquet \
file in tables/, which `read_with` reads
"""
