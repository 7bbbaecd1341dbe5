"""Every dialect says what it said before, to the byte, and the golden files hold every type of frame."""

from __future__ import annotations

import pytest

from agui_pipeline.translators.superagent import COMPATIBLE
from agui_pipeline.translators.superagent._dialects import MEANINGS
from tests.translators.superagent.kit import DIALECTS, READERS
from tests.translators.superagent.scenario import GOLDEN, sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_stream_is_the_golden_one(dialect: str) -> None:
    assert sent(dialect) == (GOLDEN / f"{dialect}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_golden_stream_has_every_type_of_frame(dialect: str) -> None:
    kinds = {kind for kind, _ in READERS[dialect]((GOLDEN / f"{dialect}.txt").read_bytes())}
    assert kinds == MEANINGS.keys() - ({"code_block"} if dialect == COMPATIBLE else set())
