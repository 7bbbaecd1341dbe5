"""One stream that makes a dialect say everything it can: the source of the golden files.

``python -m tests.translators.superagent.scenario`` (from the repository's root) writes them anew; read the difference.
"""

from __future__ import annotations

from pathlib import Path

from tests.translators.superagent.kit import DIALECTS, FINISH, START, Down, Wire, call, message, result, thought

GOLDEN = Path(__file__).parent / "golden"

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "confirm": {"type": "boolean", "title": "Delete them?"},
        "scope": {"enum": ["all", "old"]},
        "note": {"type": "string"},
    },
    "required": ["confirm", "scope"],
}

EVENTS: list[Wire] = [
    START,
    *thought("The user wants ", "two things."),
    {"type": "STEP_STARTED", "stepName": "search"},
    *call('{"query":"量子', '计算"}', id="call_1", name="web_search"),
    result('{"hits": [1, 2]}', "call_1", timestamp=1746000003456),
    *call("not JSON", id="call_2", name="clock"),
    result("no clock", "call_2", metadata={"is_error": True}),
    {"type": "STEP_FINISHED", "stepName": "search"},
    *message("Hello", ",\nsee:\n``", "`python\ndef f():\n    pa", "ss\n``", '`\n{"type":"done"}\n[DONE]\n   😀'),
    {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "reviewer", "description": "needs a look"},
    {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "a",
        "activityType": "work",
        "content": {"current": 1, "total": 3, "title": "Reading"},
        "subagentRunId": "s",
    },
    {
        "type": "ACTIVITY_DELTA",
        "messageId": "a",
        "activityType": "work",
        "patch": [{"op": "replace", "path": "/current", "value": 2}],
        "subagentRunId": "s",
    },
    *message("Looks fine.", id="m2", subagentRunId="s"),
    {"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "gave up", "code": "REVIEW_FAILED"},
    {"type": "STATE_SNAPSHOT", "snapshot": {}},
    {
        **FINISH,
        "outcome": {
            "type": "interrupt",
            "interrupts": [
                {"id": "i1", "reason": "confirmation", "message": "Delete 3 files?", "responseSchema": SCHEMA},
                {"id": "i2", "reason": "input_required"},
            ],
        },
        "usage": [{"inputTokens": 90, "outputTokens": 45}, {"inputTokens": 10, "outputTokens": 5}],
        "timestamp": 1746000010000,
    },
]


def sent(dialect: str) -> str:
    """What goes out for the scenario."""
    return Down(dialect, EVENTS, agent_id="research-agent").sent.decode()


def main() -> None:
    """Write the golden files."""
    for dialect in DIALECTS:
        (GOLDEN / f"{dialect}.txt").write_text(sent(dialect), encoding="utf-8")


if __name__ == "__main__":
    main()
