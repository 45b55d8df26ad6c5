"""Shared by all tests: one thread (the tensors are small), short hypothesis runs with a fixed seed, and small pages."""

import hypothesis
import pytest
import torch

from pruners import Page, synthetic_page

hypothesis.settings.register_profile("project", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("project")
torch.set_num_threads(1)


@pytest.fixture
def page() -> Page:
    return synthetic_page(8, 6)
