"""Which names are levels."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.translators import ConfigurationError
from agui_pipeline.translators.agui_versions import Downgrade, check_level
from tests.translators.agui_versions.judge import INPUT


@pytest.mark.parametrize("version", ["0.0.30", "0.0.31", "0.0.32", "0.0.44", "0.0.59", "1.0.0", "1.2.3"])
def test_published_versions_are_levels(version: str) -> None:
    assert str(check_level(f"ag-ui/{version}")) == version


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("ag-ui/0.0.29", "is older than any level"),
        ("ag-ui/0.0.60", "is no version of @ag-ui/client known here"),
        ("ag-ui/0.1.0", "is no version of @ag-ui/client known here"),
        ("ag-ui/2.0.0", "is no version of @ag-ui/client known here"),
        *(
            (level, "is no level")
            for level in ("ag-ui/", "ag-ui/0.0", "ag-ui/0.0.040", "ag-ui/0.0.40 ", "ag-ui/v1.0.0", "ag-ui/1.0.0-rc.1")
        ),
        *(
            (level, "is no level")
            for level in ("0.0.40", "AG-UI/0.0.40", f"ag-ui/0.0.{'9' * 5000}", "ag-ui/0.0.٤٠", 40)
        ),
    ],
)
def test_others_are_refused_with_what_is_wanted(level: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        check_level(level)
    assert words in str(raised.value)
    assert "'ag-ui/0.0.30' to 'ag-ui/0.0.59', or 'ag-ui/1.0.0'" in str(raised.value)


def test_structured_interrupts_need_a_client_that_knows_them() -> None:
    assert check_level("ag-ui/0.0.54", "structured")
    with pytest.raises(ConfigurationError, match=r"interrupts='structured' with 'ag-ui/0\.0\.53'"):
        check_level("ag-ui/0.0.53", "structured")


def test_a_rule_that_is_left_out_must_be_one() -> None:
    with pytest.raises(ConfigurationError, match="there is no rule 'chunk'"):
        Downgrade("ag-ui/0.0.40", INPUT, print, without=("chunk",))
