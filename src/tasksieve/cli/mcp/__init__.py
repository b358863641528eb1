"""``tasksieve mcp``: the commands as tools for an assistant, in one folder.

- `command`: the command itself.
- `server`: what speaks the protocol (the official Python SDK); it reads no data.
- `tools`, `arguments`: which tools there are; from the arguments of a call to the words of a command.
- `confined`: the folder, and what no path may do.
- `nursery`, `work`: a process of its own for every call, with limits; it runs the command.
- `answers`: what a command has left, as the structured answer.
"""
