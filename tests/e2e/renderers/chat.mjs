// What the chat pages share: a conversation with one endpoint in the official AG-UI client, the page's log of it, a
// tool of the page's own. Does not know A2UI.
//
// The page's address names the endpoint: chat-custom.html?agent=/agent
import { HttpAgent } from "@ag-ui/client";

const url = new URL(new URLSearchParams(location.search).get("agent"), location.href).href;
const part = (id) => document.querySelector(`#${id}`);

// Adds a line to one of the page's lists.
export function note(list, textContent) {
  const line = Object.assign(document.createElement("li"), { textContent });
  part(list).append(line);
  return line;
}

// A front-end tool: run here, its result goes to the agent.
const rename = {
  name: "rename_page",
  description: "Gives the page another heading.",
  parameters: { type: "object", properties: { heading: { type: "string" } }, required: ["heading"] },
};
function call({ function: { name, arguments: text } }) {
  if (name !== rename.name) return `There is no tool ${name} here.`;
  part("heading").textContent = JSON.parse(text).heading;
  return "Renamed.";
}

// Hold the conversation: `subscriber` gets the client's events, `props()` gives the forwardedProps of ordinary runs.
export function chat({ subscriber = {}, props = () => ({}) }) {
  const threadId = crypto.randomUUID();
  const agent = new HttpAgent({ url, threadId });
  agent.subscribe({ ...subscriber, onMessagesChanged: (changed) => (log(changed), subscriber.onMessagesChanged?.(changed)) });

  // One run on `by`, then as many as the page's tools have results for.
  async function run(by, forwardedProps) {
    const line = note("runs", "asked");
    const tell = (text) => () => (line.textContent = text);
    await by.runAgent(
      { tools: [rename], forwardedProps },
      { onRunStartedEvent: tell("running"), onRunFinishedEvent: tell("finished"), onRunErrorEvent: tell("failed") },
    );
    const answered = new Set(by.messages.map((message) => message.toolCallId));
    const open = by.messages.flatMap((message) => message.toolCalls ?? []).filter(({ id }) => !answered.has(id));
    if (open.length === 0) return;
    for (const toolCall of open) {
      by.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: toolCall.id, content: call(toolCall) });
    }
    await run(by, props());
  }

  part("say").addEventListener("submit", (event) => {
    event.preventDefault();
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: part("text").value });
    part("text").value = "";
    run(agent, props());
  });

  return {
    // In the conversation, with what was said so far.
    within: (forwardedProps) => run(agent, forwardedProps),
    // Beside it: with no message at all, on the same thread.
    beside: (forwardedProps) => {
      const other = new HttpAgent({ url, threadId });
      other.subscribe(subscriber);
      return run(other, forwardedProps);
    },
  };
}

// The log is what the client holds, not what passed by.
function log({ messages }) {
  part("log").replaceChildren();
  for (const { role, content } of messages) {
    if ((role === "user" || role === "assistant") && content) note("log", `${role}: ${content.trim()}`);
  }
}
