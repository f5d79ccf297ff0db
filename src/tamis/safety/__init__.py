"""Files and folders that appear complete or not at all, and runs that can be resumed."""
