"""The parts of `tamis.repack`: planning, free space, resuming, proof and results."""
