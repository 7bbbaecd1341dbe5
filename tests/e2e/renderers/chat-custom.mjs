// A2UI v0.9 in CUSTOM events, shown by @a2ui/lit in a chat. The page does as Agentdown's: what it can render and the
// data of the surfaces go along in forwardedProps.a2ui, an action has an id of its own and no message, and a repeated
// click sends the same request again. CUSTOM a2ui.action_state says how far an action has come.
import { basicCatalog, Context } from "@a2ui/lit/v0_9"; // defines the elements
import { renderMarkdown } from "@a2ui/markdown-it";
import { A2uiClientMessageSchema, A2uiMessageSchema, MessageProcessor } from "@a2ui/web_core/v0_9";
import { ContextProvider } from "@lit/context";
import { chat, note } from "./chat.mjs";

const main = document.querySelector("main");
new ContextProvider(main, { context: Context.markdown, initialValue: renderMarkdown });

const processor = new MessageProcessor([basicCatalog], act);
const elements = new Map();
processor.onSurfaceCreated((surface) => {
  const element = Object.assign(document.createElement("a2ui-surface"), { surface });
  elements.set(surface.id, element);
  main.append(element);
});
processor.onSurfaceDeleted((surfaceId) => {
  elements.get(surfaceId).remove();
  elements.delete(surfaceId);
});

const clientCapabilities = processor.getClientCapabilities();
const conversation = chat({
  props: () => ({ a2ui: { clientCapabilities } }),
  subscriber: {
    onCustomEvent: ({ event: { name, value } }) => {
      if (name === "a2ui") processor.processMessages([A2uiMessageSchema.parse(value)]);
      if (name === "a2ui.action_state") show(value);
    },
  },
});

let last = { content: null, request: null };

function act(action) {
  const { timestamp, ...content } = action;
  if (JSON.stringify(content) !== last.content) {
    const clientMessage = A2uiClientMessageSchema.parse({ version: "v0.9", action });
    const clientDataModel = structuredClone(processor.getClientDataModel()); // a repeat says what was there at first
    const request = { requestId: crypto.randomUUID(), clientMessage, clientCapabilities, clientDataModel };
    last = { content: JSON.stringify(content), request };
  }
  return conversation.beside({ a2ui: last.request });
}

function show({ surfaceId, interactionDisabled, states }) {
  const element = elements.get(surfaceId);
  if (element !== undefined) element.inert = interactionDisabled; // its action may have closed it
  for (const [component, { status, retryable }] of Object.entries(states)) {
    note("states", `${component} ${status}${retryable ? ", retryable" : ""}`);
  }
}
