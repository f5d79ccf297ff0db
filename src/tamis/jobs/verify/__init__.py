"""The job verify: compare a file with its source, within bounds."""
