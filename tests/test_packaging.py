"""The package lists its parts by hand: what is not listed silently misses from the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = {"facade": "agui_pipeline"} | {
    name: f"agui_pipeline.{name}" for name in ("adapters", "middleware", "translators")
}


def test_every_folder_with_modules_is_a_listed_package() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {}
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            inner = path.parent.relative_to(ROOT / folder).parts
            found[".".join((package, *inner))] = "/".join((folder, *inner))

    assert sorted(setuptools["packages"]) == sorted(found)
    listed = dict(setuptools["package-dir"])
    assert {name: listed.get(name, found[name]) for name in found} == found


def test_each_room_is_marked_as_typed() -> None:
    assert [folder for folder in FOLDERS if not (ROOT / folder / "py.typed").exists()] == []
