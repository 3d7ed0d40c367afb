"""The interfaces of older clients, on top of ours."""
