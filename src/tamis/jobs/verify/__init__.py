"""The job `tamis verify`: bounds, and the result."""
