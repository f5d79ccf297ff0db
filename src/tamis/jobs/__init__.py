"""The job `tamis.repair`: metadata of Zarr stores that other readers read incorrectly."""
