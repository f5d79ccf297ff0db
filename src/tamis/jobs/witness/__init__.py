"""The last witness of a target: xarray's own engines read it in a process without tamis."""
