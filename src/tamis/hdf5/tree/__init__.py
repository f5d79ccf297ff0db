"""The objects of a file beside values: groups, links, attributes and references, walked and copied."""
