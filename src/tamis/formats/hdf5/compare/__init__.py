"""Compare two files, except for numbers: structure, elements of any type, stored bytes."""
