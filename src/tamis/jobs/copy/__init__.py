"""The parts of `tamis copy`: nccopy's rules as a request of `tamis.repack`."""
