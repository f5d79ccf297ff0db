"""The objects of a file except values: groups, links, attributes and references, visited and copied."""
