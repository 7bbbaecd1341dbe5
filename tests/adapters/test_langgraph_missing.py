"""LangGraph where its extra is not installed."""

from __future__ import annotations

import sys

import pytest

from agui_pipeline.adapters.langgraph import LangGraphSource, wrap_agent
from agui_pipeline.translators import ConfigurationError


@pytest.mark.parametrize("make", [LangGraphSource, wrap_agent])
def test_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, make: type[LangGraphSource]) -> None:
    monkeypatch.setitem(sys.modules, "ag_ui_langgraph", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'agui-pipeline\[langgraph\]'"):
        make(object())
