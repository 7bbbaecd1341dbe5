"""A form in a chat, in the browsers' two renderers: CUSTOM events at @a2ui/lit, ACTIVITY at CopilotKit's.

The pages (renderers/chat-*.mjs) hold the conversation with the official client. What their forms send comes back to the
agent through `A2UIActionMiddleware`; what the agent answers shows in the form that is there, beside what was typed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
import pytest
from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agui_pipeline.adapters.starlette import agent_endpoint
from agui_pipeline.adapters.testing import ScriptedAgent
from agui_pipeline.middleware import (
    A2UIActionMiddleware,
    A2UIMiddleware,
    ClientCapabilities,
    EventThrottleMiddleware,
    GuardMiddleware,
    SurfaceRegistry,
)
from tests.e2e.harness import faults_in, serve

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page, Request

# The agent: what it says, as text, A2UI in JSON Lines among it.

CATALOG = "basic"  # as the agent knows it; each renderer has another id for it
LIT = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"
COPILOTKIT = "https://a2ui.org/specification/v0_9/basic_catalog.json"


@dataclass(frozen=True)
class Call:
    """A call of a tool of the page's."""

    name: str
    arguments: dict[str, Any]


Step: TypeAlias = str | dict[str, Any] | Call | Callable[..., Any] | Exception
Answer: TypeAlias = Callable[[RunAgentInput], Iterable[Step]]


def scripted(answer: Answer) -> ScriptedAgent:
    """Make an agent that says what `answer` gives: prose, A2UI messages, calls; or waits, or breaks."""

    def play(input: RunAgentInput) -> Iterator[Any]:
        run = {"threadId": input.thread_id, "runId": input.run_id}
        yield {"type": "RUN_STARTED", **run}
        message = {"messageId": f"message-{input.run_id}"}
        yield {"type": "TEXT_MESSAGE_START", **message, "role": "assistant"}
        calls = []
        for step in answer(input):
            if isinstance(step, Call):
                calls.append(step)
            elif isinstance(step, str | dict):
                text = step if isinstance(step, str) else json.dumps(step) + "\n"
                for start in range(0, len(text), 7):
                    yield {"type": "TEXT_MESSAGE_CONTENT", **message, "delta": text[start : start + 7]}
            else:
                yield step
        yield {"type": "TEXT_MESSAGE_END", **message}
        for number, call in enumerate(calls):
            id = {"toolCallId": f"call-{input.run_id}-{number}"}
            parent = {"parentMessageId": message["messageId"]}
            yield {"type": "TOOL_CALL_START", **id, "toolCallName": call.name, **parent}
            yield {"type": "TOOL_CALL_ARGS", **id, "delta": json.dumps(call.arguments)}
            yield {"type": "TOOL_CALL_END", **id}
        yield {"type": "RUN_FINISHED", **run}

    return ScriptedAgent([play])


class Gate:
    """A place where the agent waits until the test opens it."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, _input: RunAgentInput) -> None:
        while not self._open.is_set():  # noqa: ASYNC110 - set in the test's thread
            await anyio.sleep(0.005)


FIELDS = {"name": "Name", "words": "Words", "note": "Note"}
INITIAL = {"form": {"name": "Guest", "words": "", "note": ""}, "result": "Nobody yet"}


def components(title: str = "Guest book") -> dict[str, Any]:
    """Make the message with all components: three fields, of which two go with the action, two buttons, the answer."""
    described = [
        {"id": "root", "component": "Column", "children": ["title", *FIELDS, "sign", "close", "result"]},
        {"id": "title", "component": "Text", "text": title, "variant": "h2"},
        *(
            {"id": key, "component": "TextField", "label": label, "value": {"path": f"/form/{key}"}}
            for key, label in FIELDS.items()
        ),
        {"id": "sign-label", "component": "Text", "text": "Sign"},
        {
            "id": "sign",
            "component": "Button",
            "child": "sign-label",
            "action": {
                "event": {"name": "sign", "context": {key: {"path": f"/form/{key}"} for key in ("name", "words")}}
            },
        },
        {"id": "close-label", "component": "Text", "text": "Close"},
        {"id": "close", "component": "Button", "child": "close-label", "action": {"event": {"name": "close"}}},
        {"id": "result", "component": "Text", "text": {"path": "/result"}, "variant": "h3"},
    ]
    return {"version": "v0.9", "updateComponents": {"surfaceId": "book", "components": described}}


def create(**more: Any) -> dict[str, Any]:
    return {"version": "v0.9", "createSurface": {"surfaceId": "book", "catalogId": CATALOG, **more}}


def data(value: Any, path: str = "/") -> dict[str, Any]:
    return {"version": "v0.9", "updateDataModel": {"surfaceId": "book", "path": path, "value": value}}


FORM: Sequence[dict[str, Any]] = (create(sendDataModel=True), components(), data(INITIAL))
DELETE = {"version": "v0.9", "deleteSurface": {"surfaceId": "book"}}


def told(input: RunAgentInput) -> dict[str, Any] | None:
    """Return the action that the agent's conversation ends with, in whichever of the styles; None where it is none."""
    if not input.messages:
        return None
    last = input.messages[-1]
    if last.role == "tool":
        calls = {call.id: call for message in input.messages for call in getattr(message, "tool_calls", None) or ()}
        call = calls[last.tool_call_id]
        return {"action": json.loads(call.function.arguments)} if call.function.name == "log_a2ui_event" else None
    text = last.content if isinstance(last.content, str) else ""
    return json.loads(text) if text.startswith("{") else None


def signed(input: RunAgentInput) -> str | None:
    """Return what an action has signed the book with, None where the input is about something else."""
    value = told(input)
    if value is None:
        return None
    context = value["action"]["context"]
    return f"{context['name']}: {context['words']}"


def guest_book(input: RunAgentInput) -> Iterator[Step]:
    """The form to a question, what was signed to an action."""
    signature = signed(input)
    if signature is None:
        yield from FORM
    else:
        yield data(signature, "/result")


# The pages.

SURFACES = {"custom": "a2ui-surface", "activity": "cpk-a2ui-surface .a2ui-surface"}
ACTIONS = {"custom": "a2ui", "activity": "a2uiAction"}
"""What is in the forwardedProps of a run that an action has started."""


@dataclass
class Chat:
    """A page with its agent.

    Attributes:
        name: Which page: ``custom`` or ``activity``.
        page: The browser's.
        agent: Which inputs it got.
        surface: Every surface that the page shows.
        requests: The bodies that the page has sent.
    """

    name: str
    page: Page
    agent: ScriptedAgent
    surface: Locator
    requests: list[dict[str, Any]] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Send a message."""
        self.page.get_by_role("textbox", name="Say").fill(text)
        self.page.get_by_role("button", name="Send").click()

    def field(self, label: str) -> Locator:
        """Find a field of the form."""
        return self.surface.locator("input").nth(list(FIELDS.values()).index(label))

    def press(self, name: str) -> None:
        """Click a button of the form."""
        self.surface.get_by_role("button", name=name).click()

    @property
    def result(self) -> Locator:
        """Find what the form shows as the answer."""
        return self.surface.locator("h3")

    def lines(self, name: Literal["log", "runs", "states"]) -> Locator:
        """Find the lines of one of the page's lists."""
        return self.page.locator(f"#{name} li")


@contextmanager
def opened(browser: Browser, pages: Path, name: str, agent: ScriptedAgent, chain: Sequence[Any]) -> Iterator[Chat]:
    """Open a chat page with an agent behind a chain; at the end nothing has gone wrong in it."""
    endpoint = Route("/agent", agent_endpoint(agent, *chain, GuardMiddleware()))
    app = Starlette(routes=[endpoint, Mount("/pages", StaticFiles(directory=pages))])
    with serve(app) as base, closing(browser.new_page(viewport={"width": 800, "height": 900})) as page:
        page.set_default_timeout(15_000)
        faults = faults_in(page, base)
        chat = Chat(name, page, agent, page.locator(SURFACES[name]))

        def keep(request: Request) -> None:
            if request.post_data is not None:
                chat.requests.append(json.loads(request.post_data))

        page.on("request", keep)
        page.goto(f"{base}/pages/chat-{name}.html?agent=/agent")
        yield chat
    assert faults == []


def custom_chain(**options: Any) -> list[Any]:
    """Make the chain for Agentdown's page."""
    registry = SurfaceRegistry()
    aliases = {CATALOG: LIT}
    to_events = A2UIMiddleware.chat(registry=registry, catalog_aliases=aliases, reused="recreate")
    actions = A2UIActionMiddleware(registry=registry, unknown_surfaces="refuse", catalog_aliases=aliases, **options)
    return [to_events, actions, EventThrottleMiddleware()]


def activity_chain() -> list[Any]:
    """Make the chain for CopilotKit's page."""
    registry = SurfaceRegistry()
    to_events = A2UIMiddleware.chat(
        carrier="activity", registry=registry, catalog_aliases={CATALOG: COPILOTKIT}, reused="recreate"
    )
    actions = A2UIActionMiddleware(style="tool_call", registry=registry, unknown_surfaces="refuse")
    return [to_events, actions, EventThrottleMiddleware()]


OpenChat: TypeAlias = Callable[[Answer], AbstractContextManager[Chat]]
OpenCustom: TypeAlias = Callable[..., AbstractContextManager[Chat]]


@pytest.fixture(params=["custom", "activity"])
def open_chat(request: pytest.FixtureRequest, browser: Browser, renderer_pages: Path) -> OpenChat:
    """Open each of both pages: ``with open_chat(answer) as chat``."""
    chain = custom_chain() if request.param == "custom" else activity_chain()
    return lambda answer: opened(browser, renderer_pages, request.param, scripted(answer), chain)


@pytest.fixture
def open_custom(browser: Browser, renderer_pages: Path) -> OpenCustom:
    """Open Agentdown's page; options are those of `A2UIActionMiddleware`."""
    return lambda answer, **options: opened(
        browser, renderer_pages, "custom", scripted(answer), custom_chain(**options)
    )


def ask(chat: Chat) -> None:
    """Ask for the form, and wait for it and for the end of the run."""
    from playwright.sync_api import expect

    chat.say("The guest book, please")
    expect(chat.result).to_have_text("Nobody yet")
    expect(chat.lines("runs").last).to_have_text("finished")


def fill(chat: Chat, **texts: str) -> None:
    """Type into fields."""
    for key, text in texts.items():
        chat.field(FIELDS[key]).fill(text)


def expect_typed(chat: Chat, **texts: str) -> None:
    """See that fields hold what was typed."""
    from playwright.sync_api import expect

    for key, text in texts.items():
        expect(chat.field(FIELDS[key])).to_have_value(text)


def test_a_form_renders_and_answers_show_in_it_beside_what_was_typed(open_chat: OpenChat) -> None:
    from playwright.sync_api import expect

    with open_chat(guest_book) as chat:
        ask(chat)
        expect(chat.surface.get_by_role("heading", name="Guest book")).to_be_visible()
        expect_typed(chat, name="Guest", words="", note="")

        fill(chat, name="Ada", words="Hello", note="not signed")
        chat.press("Sign")
        expect(chat.result).to_have_text("Ada: Hello")
        expect_typed(chat, name="Ada", words="Hello", note="not signed")

        fill(chat, words="Hello again")
        chat.press("Sign")
        expect(chat.result).to_have_text("Ada: Hello again")
        expect_typed(chat, name="Ada", words="Hello again", note="not signed")
        expect(chat.surface).to_have_count(1)
        expect(chat.lines("runs")).to_have_text(["finished"] * 3)
        assert {key for body in chat.requests[1:] for key in body["forwardedProps"]} == {ACTIONS[chat.name]}


def test_what_is_typed_while_an_answer_comes_stays(open_chat: OpenChat) -> None:
    from playwright.sync_api import expect

    gate = Gate()

    def answer(input: RunAgentInput) -> Iterator[Step]:
        signature = signed(input)
        if signature is None:
            yield from FORM
            return
        yield data("Writing", "/result")
        yield gate
        yield components(title="Signed guest book")
        yield data(signature, "/result")

    with open_chat(answer) as chat:
        ask(chat)
        fill(chat, name="Ada", words="Hello")
        chat.press("Sign")
        expect(chat.result).to_have_text("Writing")
        fill(chat, note="typed meanwhile")
        gate.open()
        expect(chat.result).to_have_text("Ada: Hello")
        expect(chat.surface.get_by_role("heading", name="Signed guest book")).to_be_visible()
        expect_typed(chat, name="Ada", words="Hello", note="typed meanwhile")


@pytest.mark.parametrize("closed", [True, False])
def test_a_form_that_is_asked_for_again_is_a_new_one(open_chat: OpenChat, closed: bool) -> None:
    from playwright.sync_api import expect

    def answer(input: RunAgentInput) -> Iterator[Step]:
        yield from FORM if told(input) is None else [DELETE]

    with open_chat(answer) as chat:
        ask(chat)
        fill(chat, name="Ada")
        if closed:
            chat.press("Close")
            expect(chat.surface).to_have_count(0)
        expect(chat.lines("runs")).to_have_text(["finished"] * (1 + closed))
        ask(chat)
        expect(chat.surface).to_have_count(1)
        expect_typed(chat, name="Guest")


def test_prose_a_form_and_a_tool_of_the_page_in_one_run(open_chat: OpenChat) -> None:
    from playwright.sync_api import expect

    def answer(input: RunAgentInput) -> Iterator[Step]:
        if len(input.messages) > 1:
            yield "The page is renamed." if input.messages[-1].role == "tool" else "You are welcome."
            return
        yield "Here it is.\n"
        yield from FORM
        yield "Sign, please."
        yield Call("rename_page", {"heading": "Our guests"})

    with open_chat(answer) as chat:
        chat.say("The guest book, please")
        said = [
            "user: The guest book, please",
            "assistant: Here it is. Sign, please.",
            "assistant: The page is renamed.",
        ]
        expect(chat.lines("log")).to_have_text(said)
        expect(chat.result).to_have_text("Nobody yet")
        expect(chat.page.get_by_role("heading", name="Our guests")).to_be_visible()
        expect(chat.lines("runs")).to_have_text(["finished"] * 2)
        asked, returned = chat.agent.inputs  # a run each
        assert [tool.name for tool in asked.tools or ()] == ["rename_page"]
        assert returned.messages[-1].content == "Renamed."

        fill(chat, name="Ada")
        chat.say("Thanks")
        expect(chat.lines("log")).to_have_text([*said, "user: Thanks", "assistant: You are welcome."])
        expect_typed(chat, name="Ada")


def test_data_of_the_surface_and_what_the_page_can_render_come_along(
    open_custom: OpenCustom,
) -> None:
    from playwright.sync_api import expect

    capabilities = ClientCapabilities()
    with open_custom(guest_book, capabilities=capabilities) as chat:
        ask(chat)
        known = capabilities.get(chat.agent.inputs[0].thread_id)
        assert known is not None
        assert known.supported("v0.9") == (CATALOG,)

        fill(chat, name="Ada", words="Hello", note="not in the action")
        chat.press("Sign")
        expect(chat.result).to_have_text("Ada: Hello")
        value = told(chat.agent.inputs[-1])
        assert value is not None
        form = {"name": "Ada", "words": "Hello", "note": "not in the action"}
        assert value["clientDataModel"]["surfaces"] == {"book": {"form": form, "result": "Nobody yet"}}


def test_a_click_that_is_repeated_runs_once(open_custom: OpenCustom) -> None:
    from playwright.sync_api import expect

    with open_custom(guest_book) as chat:
        ask(chat)
        fill(chat, name="Ada", words="Hello")
        chat.press("Sign")
        expect(chat.lines("runs")).to_have_text(["finished"] * 2)
        fill(chat, note="typed between")
        chat.press("Sign")
        expect(chat.lines("runs")).to_have_text(["finished"] * 3)
        expect(chat.result).to_have_text("Ada: Hello")
        expect_typed(chat, name="Ada", words="Hello", note="typed between")
        _asked, first, second = [body["forwardedProps"]["a2ui"] for body in chat.requests]
        assert first == second
        assert chat.agent.started == 2

        fill(chat, words="Something else")
        chat.press("Sign")
        expect(chat.result).to_have_text("Ada: Something else")
        assert chat.agent.started == 3


def test_a_double_click_joins_the_run_that_answers_it(
    open_custom: OpenCustom,
) -> None:
    from playwright.sync_api import expect

    gate = Gate()

    def answer(input: RunAgentInput) -> Iterator[Step]:
        if told(input) is not None:
            yield gate
        yield from guest_book(input)

    with open_custom(answer, while_running="join") as chat:
        ask(chat)
        fill(chat, name="Ada", words="Hello")
        chat.surface.get_by_role("button", name="Sign").dblclick()
        expect(chat.lines("runs")).to_have_text(["finished", "running", "running"])
        gate.open()
        expect(chat.lines("runs")).to_have_text(["finished"] * 3)
        expect(chat.result).to_have_text("Ada: Hello")
        assert chat.agent.started == 2


def test_the_page_sees_how_far_an_action_has_come(open_custom: OpenCustom) -> None:
    from playwright.sync_api import expect

    gate = Gate()
    problems = iter([ConnectionError("the guest book is locked")])

    def answer(input: RunAgentInput) -> Iterator[Step]:
        if told(input) is not None:
            yield gate
            yield from problems  # the first time only
        yield from guest_book(input)

    with open_custom(answer, action_states=True) as chat:
        ask(chat)
        fill(chat, name="Ada", words="Hello")
        chat.press("Sign")
        expect(chat.lines("states")).to_have_text(["sign pending"])
        expect(chat.surface).to_have_attribute("inert", "")
        gate.open()
        expect(chat.lines("states")).to_have_text(["sign pending", "sign failed, retryable"])
        expect(chat.surface).not_to_have_attribute("inert", "")
        expect(chat.lines("runs")).to_have_text(["finished", "failed"])
        expect(chat.result).to_have_text("Nobody yet")

        chat.press("Sign")  # the same request again: a run that failed was not recorded
        expect(chat.result).to_have_text("Ada: Hello")
        expect(chat.lines("states")).to_have_text(
            ["sign pending", "sign failed, retryable", "sign pending", "sign succeeded"]
        )
        expect_typed(chat, name="Ada", words="Hello")
        first, second = [body["forwardedProps"]["a2ui"]["requestId"] for body in chat.requests[1:]]
        assert first == second
