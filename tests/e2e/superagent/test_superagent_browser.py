"""Front ends of the old API in a real browser: what they show of our frames, and the question answered there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from agui_pipeline.adapters.superagent import routes
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware
from tests.e2e.harness import serve
from tests.e2e.superagent.agent import AFTER, ARGUMENTS, CODE, FENCED, QUESTION, RESULT, TEXT, THOUGHT, agent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
CALL = re.compile(rf"call-\S+ web_search {re.escape(ARGUMENTS)} calling")
FIELD = "confirm:confirm:确认操作:true"


BARE = "/api/v1/chat"
CHAINED = "/chained"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    agents = {"research-agent": agent, "other-agent": agent}
    chained = routes(agents, EventThrottleMiddleware(interval=0.01), GuardMiddleware(), prefix=CHAINED)
    with serve(Starlette(routes=[*routes(agents), *chained, Mount("/", StaticFiles(directory=HERE))])) as base:
        yield base


Open = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: Browser, site: str, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens a front end, in a session of its own; at the end nothing has gone wrong in it."""
    faults: list[str] = []
    pages: list[Page] = []

    def opened(client: str, session: str | None = None, message: str | None = "go", api: str = BARE) -> Page:
        page = browser.new_page()
        pages.append(page)
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if line.type in ("error", "warning") else None)
        said = {} if message is None else {"message": message}
        query = {
            "api": api,
            "client": client,
            "agent": "research-agent",
            "session": session or request.node.name,
            **said,
        }
        page.goto(f"{site}/page.html?{urlencode(query)}")
        return page

    yield opened
    for page in pages:
        page.close()
    assert [fault for fault in faults if "favicon" not in fault and "404" not in fault] == []


def shown(page: Page, id: str) -> str:
    return page.locator(f"#{id}").text_content() or ""


def items(page: Page, id: str) -> list[str]:
    return page.locator(f"#{id} li").all_text_contents()


def asked(page: Page) -> None:
    """Wait for the question."""
    from playwright.sync_api import expect

    expect(page.locator("#dialog")).to_be_visible()
    expect(page.locator("#reason")).to_have_text(QUESTION)


def click(page: Page, answer: str) -> None:
    """Answer the question; wait for the end."""
    from playwright.sync_api import expect

    page.locator(f"#{answer}").click()
    expect(page.locator("#status")).to_have_text("done")


@pytest.mark.parametrize(
    ("api", "answer", "end"), [(BARE, "yes", "Deleted, 1 question(s)."), (CHAINED, "no", "Kept, 1 question(s).")]
)
def test_the_fetch_reader(open_page: Open, api: str, answer: str, end: str) -> None:
    page = open_page("reader", api=api)
    asked(page)
    assert shown(page, "fields") == FIELD
    assert shown(page, "text") == TEXT + AFTER
    assert shown(page, "code") == CODE
    assert shown(page, "thinking") == THOUGHT
    (call,) = items(page, "calls")
    assert CALL.fullmatch(call)
    (result,) = items(page, "results")
    assert result == f"{call.split()[0]} web_search {RESULT} false"
    assert items(page, "progress") == ["research-agent search 1/0"]
    assert items(page, "switches") == ["research-agent writer", "writer research-agent"]
    assert items(page, "errors") == []
    click(page, answer)
    assert shown(page, "text") == TEXT + AFTER + end
    assert len(items(page, "calls")) == 1


def test_the_appending_hook(open_page: Open) -> None:
    page = open_page("hook")
    asked(page)
    assert shown(page, "text") == TEXT + AFTER
    assert shown(page, "thinking") == THOUGHT
    (call,) = items(page, "calls")  # it appends each: a call must come once
    assert CALL.fullmatch(call)
    click(page, "yes")
    assert shown(page, "text") == TEXT + AFTER + "Deleted, 1 question(s)."
    assert len(items(page, "calls")) == 1


def test_the_event_source(open_page: Open) -> None:
    page = open_page("source")
    asked(page)
    assert shown(page, "text") == TEXT + AFTER
    assert shown(page, "code") == CODE
    assert shown(page, "thinking") == THOUGHT
    (call,) = items(page, "calls")
    assert call.startswith("web_search {")
    assert json.loads(call.removeprefix("web_search ")) == json.loads(ARGUMENTS)
    assert items(page, "results") == [f"web_search {RESULT} null"]
    assert items(page, "switches") == ["research-agent writer", "writer research-agent"]
    click(page, "yes")
    assert shown(page, "text") == TEXT + AFTER + "Deleted, 1 question(s)."
    assert items(page, "progress") == ["open"]  # it has connected once


def test_an_event_source_that_only_looks(open_page: Open) -> None:
    asked(open_page("reader", "shared"))
    page = open_page("source", "shared", None)
    asked(page)
    assert shown(page, "text") == ""  # nothing was run again
    click(page, "no")
    assert shown(page, "text") == "Kept, 1 question(s)."


def test_the_reader_of_tokens(open_page: Open) -> None:
    page = open_page("tokens")
    asked(page)
    assert shown(page, "fields") == FIELD
    assert shown(page, "text") == TEXT + FENCED + AFTER
    assert shown(page, "thinking") == THOUGHT
    (call,) = items(page, "calls")
    assert CALL.fullmatch(call)
    click(page, "yes")
    assert shown(page, "text") == TEXT + FENCED + AFTER + "Deleted, 1 question(s)."


def test_a_second_turn_of_the_conversation(open_page: Open) -> None:
    asked(open_page("reader", "twice"))
    page = open_page("reader", "twice", "again")
    asked(page)
    click(page, "yes")
    assert shown(page, "text").endswith("Deleted, 2 question(s).")
