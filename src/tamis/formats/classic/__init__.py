"""netCDF classic files: CDF-1, 64-bit offset and CDF-5."""
