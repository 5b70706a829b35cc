"""The command line: one module a group of commands, heavy imports inside the commands."""
