"""A module for each command, which is its attribute `command`."""
