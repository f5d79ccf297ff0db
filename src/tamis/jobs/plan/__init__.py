"""Foreign filters next to the candidates of a plan: measured in the same way, but never chosen."""
