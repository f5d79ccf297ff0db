"""The job `tamis.plan`: filters that keep what is wanted, measured on a sample."""
