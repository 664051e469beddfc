"""What is trained here is small."""

import pytest


@pytest.fixture(autouse=True)
def _single(one_thread: None) -> None:
    """Tensors as small as these only wait when threads share them."""
