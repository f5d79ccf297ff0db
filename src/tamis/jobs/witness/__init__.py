"""The last witness of a target: xarray's own engines read it in a process without tamis.

- `stock_reader`: what runs in that process, which `process` starts.
- `look`, `loss`: the comparison of what it reads of source and target.
"""
