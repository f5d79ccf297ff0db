"""What the commands and Python do: one room for each job."""
