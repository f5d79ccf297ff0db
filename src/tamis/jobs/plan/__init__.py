"""Filters of others beside the candidates of a plan: measured in the same way, and never chosen."""
