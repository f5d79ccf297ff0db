"""The command line."""

from tamis.cli.main import main

__all__ = ["main"]
