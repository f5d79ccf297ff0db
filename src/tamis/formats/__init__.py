"""Storage formats, one folder each, behind the protocols of `tamis.stores`."""
