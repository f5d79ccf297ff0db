"""Two files compared beside the numbers in them: structure, elements of any type, stored bytes."""
