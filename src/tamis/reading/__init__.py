"""What `tamis.open` returns."""
