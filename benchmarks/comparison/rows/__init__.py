"""The rows of the comparison, one kind of work a file."""
