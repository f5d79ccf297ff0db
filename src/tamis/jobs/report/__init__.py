"""The job `tamis report`: statistics, charts and maps of what compression did, as one page."""
