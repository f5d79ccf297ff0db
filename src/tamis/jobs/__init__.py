"""What tamis does with whole files: one job, one module."""
