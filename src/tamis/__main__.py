"""The command line as ``python -m tamis``."""

from tamis_command import main

if __name__ == "__main__":
    main()
