"""The names at the top: all there, the ones that were meant, and imported only when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agui_pipeline
from agui_pipeline import middleware, translators
from agui_pipeline.adapters import http, langgraph, starlette


def test_every_name_is_the_object_of_its_home() -> None:
    homes = (translators, middleware, starlette, http, langgraph)
    for name in set(agui_pipeline.__all__) - {"__version__"}:
        value = getattr(agui_pipeline, name)
        assert any(getattr(home, name, None) is value for home in homes), name


def test_dir_lists_the_public_names() -> None:
    assert set(agui_pipeline.__all__) <= set(dir(agui_pipeline))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        agui_pipeline.Nothing  # noqa: B018


@pytest.mark.parametrize("room", [translators, middleware])
def test_rooms_export_what_they_say(room: object) -> None:
    names = vars(room)["__all__"]
    assert sorted(names) == sorted(set(names))
    assert all(hasattr(room, name) for name in names)


def test_importing_the_package_imports_neither_starlette_nor_the_sdk() -> None:
    code = "import sys, agui_pipeline; print([m for m in ('starlette', 'ag_ui', 'httpx', 'trio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
