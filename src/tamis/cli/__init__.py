"""The command line."""

from tamis.cli.main import main, preload

__all__ = ["main", "preload"]
