"""The demo's page in a real browser: JSON text from the bare agent, a form that computes from the wrapped one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from examples.calculator.server import ASK, PATHS, build_app
from tests.e2e.harness import faults_in, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    with serve(build_app(pause=0)) as base:
        yield base


@pytest.fixture
def page(browser: Browser, demo: str) -> Iterator[Page]:
    """The demo's page, just opened; at the end nothing has gone wrong in it or been fetched from elsewhere."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(15_000)
    faults = faults_in(page, demo)
    page.goto(demo + "/")
    yield page
    page.close()
    assert faults == []


def ask(page: Page, path: str) -> Locator:
    """Pick the agent at ``path``, ask it for a calculator, wait for the end of the run; return the conversation."""
    from playwright.sync_api import expect

    target = page.get_by_role("group", name="Connection target")
    target.get_by_role("button", name="Agent").click()
    target.get_by_role("button", name=f"{PATHS[path]} {path}", exact=True).click()
    page.get_by_role("button", name=ASK).click()
    conversation = page.get_by_role("region", name="Conversation")
    expect(conversation.get_by_text("Finished")).to_have_count(1)
    return conversation


def test_the_bare_agent_shows_json_text(page: Page) -> None:
    from playwright.sync_api import expect

    conversation = ask(page, "/agent")
    expect(conversation.get_by_text('{"beginRendering":{"surfaceId":"calculator","root":"root"}}')).to_be_visible()
    expect(conversation.locator("[data-surface]")).to_have_count(0)


@pytest.fixture
def form(page: Page) -> Locator:
    """The form of the activity agent, 12, 7 and multiply chosen in it, the button clicked."""
    surface = ask(page, "/a2ui-activity").locator("[data-surface=calculator]")
    surface.get_by_label("Operand A").fill("12")
    surface.get_by_label("Operand B").fill("7")
    surface.get_by_role("combobox").select_option("multiply")
    surface.get_by_role("button", name="Calculate").click()
    return surface


def test_the_activity_agent_shows_a_form_that_computes(page: Page, form: Locator) -> None:
    from playwright.sync_api import expect

    expect(form.get_by_role("heading", name="Calculator")).to_be_visible()
    expect(form.locator("h3")).to_have_text("84")
    expect(page.locator("[data-surface]")).to_have_count(1)  # the answer went into the form that is there


def test_the_form_keeps_what_was_typed_and_computes_again(page: Page, form: Locator) -> None:
    from playwright.sync_api import expect

    result = form.locator("h3")
    expect(result).to_have_text("84")
    expect(form.get_by_label("Operand A")).to_have_value("12")
    expect(form.get_by_label("Operand B")).to_have_value("7")
    expect(form.get_by_role("combobox")).to_have_value("multiply")

    form.get_by_label("Operand B").fill("8")
    form.get_by_role("button", name="Calculate").click()
    expect(result).to_have_text("96")

    form.get_by_label("Operand B").fill("0")
    form.get_by_role("combobox").select_option("divide")
    form.get_by_role("button", name="Calculate").click()
    expect(result).to_have_text("Cannot divide by zero.")
    expect(page.locator("[data-surface]")).to_have_count(1)


@pytest.mark.parametrize(("path", "kind"), [("/a2ui", "RAW"), ("/a2ui-custom", "CUSTOM")])
def test_the_other_agents_frames_can_be_read(page: Page, path: str, kind: str) -> None:
    from playwright.sync_api import expect

    ask(page, path)
    frames = page.get_by_role("region", name="Inspection")
    expect(frames.get_by_text(kind, exact=True)).to_have_count(4 if kind == "RAW" else 3)
    expect(frames.get_by_text("TEXT_MESSAGE_CONTENT")).to_have_count(0)
