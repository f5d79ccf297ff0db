"""Warnings of the library stand on standard error as notes of the command."""

from __future__ import annotations

import subprocess
import sys


def test_warning_is_printed_without_the_line_of_code() -> None:
    code = """
import warnings
import click
from tamis.cli.ending import Commands

@click.group(cls=Commands)
def main(): ...

@main.command()
def speak():
    warnings.warn("out.html:\\x1b[1m cannot be removed\\nand stays", UserWarning)

format_in_python = warnings.formatwarning
main(["speak"], standalone_mode=False)
assert warnings.formatwarning is format_in_python
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "tamis: out.html:\\x1b[1m cannot be removed\ntamis: and stays\n"
