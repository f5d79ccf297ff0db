"""Many files repacked in one run: listed, distributed to processes or a cluster, and recorded beside the targets."""
