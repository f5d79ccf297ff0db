"""A plugin of pytest: the skips of a run by reason, and a failure for each that `skips.py` does not allow.

`tests/conftest.py` registers it; with pytest-xdist, the process that the workers report to has all of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import skips


class SkipReport:
    """The skips of a run, by the test or module that skipped."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._add(report)

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        # The report of an expected failure counts as skipped, too.
        if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
            self.reasons[report.nodeid] = str(report.longrepr[2]).removeprefix("Skipped: ")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over the modules that a worker skipped: workers report only tests by themselves."""
        self.reasons |= getattr(node, "workeroutput", {}).get("skips", {})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["skips"] = self.reasons
        elif self._problems() and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.reasons:
            terminalreporter.section("skips by reason")
            for reason, count in Counter(self.reasons.values()).most_common():
                terminalreporter.write_line(f"{count:5} {reason}")
        if lines := skips.wanted(Counter(self.reasons.values())):
            terminalreporter.section("packages that bring back skipped tests, and the line that installs them")
            for line in lines:
                terminalreporter.write_line(line)
        for line in self._problems():
            terminalreporter.write_line(f"ERROR: {line}", red=True)

    def _problems(self) -> list[str]:
        return skips.problems(self.reasons.values())


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin("skips by reason"):
        config.pluginmanager.register(SkipReport(config), "skips by reason")
