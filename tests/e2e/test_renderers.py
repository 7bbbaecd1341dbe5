"""The official A2UI renderers in a real browser, each at the carrier that the demo's own page cannot show.

Their pages (renderers/) are served beside the demo. RAW goes to the v0.8 renderer, CUSTOM to v0.9's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from starlette.staticfiles import StaticFiles

from examples.calculator.server import build_app
from tests.e2e.harness import faults_in, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page, Request


@pytest.fixture(scope="module")
def demo(renderer_pages: Path) -> Iterator[str]:
    """The demo, with the renderers' pages at /renderers."""
    app = build_app(pause=0)
    app.mount("/renderers", StaticFiles(directory=renderer_pages))
    with serve(app) as base:
        yield base


@dataclass
class Form:
    """The calculator as one renderer shows it."""

    page: Page
    a: Locator
    b: Locator
    result: Locator
    multiply: Callable[[], None]
    chosen: Locator
    requests: list[dict[str, Any]] = field(default_factory=list)  # the bodies that the page has sent

    def calculate(self) -> None:
        """Click the button."""
        self.page.get_by_role("button", name="Calculate").click()


def form_v08(page: Page) -> Form:
    """Components carry their A2UI ids; the choice is a list that opens."""
    choice = page.locator("#operator-choice")

    def multiply() -> None:
        choice.locator(".dropdown-header").click()
        choice.get_by_text("Multiply").click()

    return Form(
        page=page,
        a=page.locator("#field-a input"),
        b=page.locator("#field-b input"),
        result=page.locator("#result-value h3"),
        multiply=multiply,
        chosen=choice.locator(".option-item.selected", has_text="Multiply"),
    )


def form_v09(page: Page) -> Form:
    """Components carry no ids; the choice is a group of radio buttons."""
    fields = page.locator("a2ui-basic-textfield")
    multiply = page.get_by_role("radio", name="Multiply")
    return Form(
        page=page,
        a=fields.filter(has_text="Operand A").locator("input"),
        b=fields.filter(has_text="Operand B").locator("input"),
        result=page.locator("a2ui-basic-text h3"),
        multiply=multiply.check,
        chosen=page.locator("input[type=radio][value=multiply]:checked"),
    )


def open_form(browser: Browser, demo: str, name: str, path: str, find: Callable[[Page], Form]) -> Iterator[Form]:
    """Open a page, ask its agent for the form; at the end nothing has gone wrong in it or been fetched elsewhere."""
    page = browser.new_page(viewport={"width": 800, "height": 800})
    page.set_default_timeout(15_000)
    form = find(page)
    faults = faults_in(page, demo)

    def on_request(request: Request) -> None:
        if request.post_data is not None:
            form.requests.append(json.loads(request.post_data))

    page.on("request", on_request)
    page.goto(f"{demo}/renderers/{name}.html?agent={path}")
    page.get_by_role("button", name="Ask").click()
    yield form
    page.close()
    assert faults == []


@pytest.fixture
def raw_form(browser: Browser, demo: str) -> Iterator[Form]:
    yield from open_form(browser, demo, "v08", "/a2ui", form_v08)


@pytest.fixture
def custom_form(browser: Browser, demo: str) -> Iterator[Form]:
    yield from open_form(browser, demo, "v09", "/a2ui-custom", form_v09)


def compute_twice(form: Form) -> None:
    """12 times 7, then 12 times 8 with nothing typed but the 8."""
    from playwright.sync_api import expect

    expect(form.page.get_by_role("heading", name="Calculator")).to_be_visible()
    form.a.fill("12")
    form.b.fill("7")
    form.multiply()
    form.calculate()
    expect(form.result).to_have_text("84")
    expect(form.a).to_have_value("12")
    expect(form.b).to_have_value("7")
    expect(form.chosen).to_have_count(1)

    form.b.fill("8")
    form.calculate()
    expect(form.result).to_have_text("96")
    expect(form.a).to_have_value("12")
    expect(form.page.locator("a2ui-surface")).to_have_count(1)  # the answers went into the form that is there


def test_the_v08_renderer_computes_from_raw_events(raw_form: Form) -> None:
    compute_twice(raw_form)
    _asked, first, second = raw_form.requests
    contexts = [json.loads(body["messages"][-1]["content"])["userAction"]["context"] for body in (first, second)]
    assert contexts == [{"operation": ["multiply"], "a": "12", "b": b} for b in ("7", "8")]


def test_the_v09_renderer_computes_from_custom_events(custom_form: Form) -> None:
    compute_twice(custom_form)
    _asked, first, second = custom_form.requests
    assert first["messages"] == second["messages"] == []
    messages = [body["forwardedProps"]["a2ui"]["clientMessage"] for body in (first, second)]
    assert [message["version"] for message in messages] == ["v0.9.1"] * 2
    contexts = [message["action"]["context"] for message in messages]
    assert contexts == [{"operation": ["multiply"], "a": "12", "b": b} for b in ("7", "8")]
