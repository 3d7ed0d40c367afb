"""The kinds of servers that are compared, one a file."""
