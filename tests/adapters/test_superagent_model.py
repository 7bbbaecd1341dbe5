"""Whatever the clients of a session do, in whatever order: runs, answers and refusals agree with a model of it."""

from __future__ import annotations

import json
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.adapters.superagent import MemorySessions
from tests.adapters.superagent import CONFIRM, ENVELOPED, Agent, answer, app, enveloped, get, interrupt, refused, say

ACTIONS = ("say", "ask", "answer", "wrong answer", "empty answer", "look", "look again", "other worker")


async def play(actions: list[str], questions: int, *, history: bool) -> None:
    agent = Agent(*(interrupt(f"i{number}", responseSchema=CONFIRM) for number in range(questions)))
    store = MemorySessions()
    workers = [app(agent, store=store, history=history) for _ in range(2)]
    known, left, said, runs = False, 0, 0, 0
    for action in actions:
        if action == "other worker":
            workers.reverse()
            continue
        served, before = workers[0], left
        if action in ("say", "ask"):
            response = await say(served, "ask" if action == "ask" else "hello")
            known, runs, said, left = True, runs + 1, said + 1, questions if action == "ask" else 0
        elif action in ("look", "look again"):
            response = await get(served, {"last-event-id": "1"} if action == "look again" else ENVELOPED, session="s")
            if action == "look" and not left:
                known, runs = True, runs + 1
        else:
            given: Any = {"answer": "yes"} if action == "answer" else {"input": {}}
            response = await answer(served, **({"answer": "perhaps"} if action == "wrong answer" else given))
            expected = (404, "unknown_session") if not known else (409, "nothing_to_resume")
            if left and action == "answer":
                left -= 1
                runs += not left
            else:
                assert refused(response) == ((400, "invalid_request") if left else expected)
        assert len(agent.inputs) == runs, action
        if response.status != 200:
            continue
        frames = [frame for frame in response.frames if frame.data is not None]
        kinds = [kind for kind, _ in enveloped(response)] if frames[0].event else _types(frames)
        assert kinds.count("done") == 1
        assert kinds[-1] == "done"
        assert kinds.count("interrupt") == left
        resume = (agent.last.resume or []) if agent.inputs else []
        if action == "answer" and not left:
            assert [entry.interrupt_id for entry in resume] == [f"i{number}" for number in range(questions)]
            assert [entry.payload for entry in resume] == questions * [{"confirm": True}]
        if action == "say":
            assert len(resume) == (questions if before else 0)
            users = [message for message in agent.last.messages if message.role == "user"]
            assert len(users) == (said if history else 1)


def _types(frames: list[Any]) -> list[str]:
    return [json.loads(frame.data)["type"] for frame in frames]


@given(st.lists(st.sampled_from(ACTIONS), max_size=12), st.integers(1, 3), st.booleans())
def test_a_session_and_its_model_agree(actions: list[str], questions: int, history: bool) -> None:
    async def main() -> None:
        await play(actions, questions, history=history)

    anyio.run(main)
