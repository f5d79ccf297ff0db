"""One module for each command; its attribute `command` is the click command."""
