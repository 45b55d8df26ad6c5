"""Shared by all tests: one thread (the tensors are small), short hypothesis runs with a fixed seed, small pages.

A skipped test is a failure, except in tests/browser where a machine may have no browser.
"""

from pathlib import Path

import hypothesis
import pytest
import torch

from pruners import Page, synthetic_page

hypothesis.settings.register_profile("project", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("project")
torch.set_num_threads(1)

BROWSER = Path(__file__).parent / "browser"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.skipped and not item.path.is_relative_to(BROWSER):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped; outside tests/browser a skip is a failure: {report.longrepr}"
    return report


@pytest.fixture
def page() -> Page:
    return synthetic_page(8, 6)
