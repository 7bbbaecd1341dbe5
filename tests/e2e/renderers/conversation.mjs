// What both pages share: a conversation with one endpoint, held by the official AG-UI client. Knows which events carry
// A2UI. Does not know a renderer, nor what is in the messages.
//
// The page's address names the endpoint: v08.html?agent=/a2ui
import { HttpAgent } from "@ag-ui/client";

// Start a conversation. `show(message)` gets each A2UI message, at once as it arrives. Returns the two things that a
// page can send: what the user says, or what the user did.
export function converse({ carrier, show }) {
  const url = new URL(new URLSearchParams(location.search).get("agent"), location.href).href;
  const agent = new HttpAgent({ url, threadId: crypto.randomUUID() });
  const run = (forwardedProps) => agent.runAgent({ forwardedProps }, { ...carrier(show), onRunErrorEvent: fail });

  return {
    say: (content) => {
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
      return run({});
    },
    // Beside the conversation: no message says it, the history stays here.
    tell: (forwardedProps) => {
      agent.setMessages([]);
      return run(forwardedProps);
    },
  };
}

// RAW events of an A2UI source, one message each.
export const raw = (show) => ({
  onRawEvent: ({ event }) => {
    if (event.source?.startsWith("a2ui/")) show(event.event);
  },
});

// CUSTOM events named a2ui, one message each.
export const custom = (show) => ({
  onCustomEvent: ({ event }) => {
    if (event.name === "a2ui") show(event.value);
  },
});

// A run that ends in RUN_ERROR must not pass for a quiet one: what a page logs as an error fails the test.
function fail({ event }) {
  console.error(`RUN_ERROR: ${event.message}`);
}
