"""The job `tamis export`, and its result."""
