// A2UI v0.9 in CUSTOM events, shown by @a2ui/lit. Actions go back as A2UI clients of that version send them: in
// forwardedProps.a2ui.clientMessage, with no message at all.
import { basicCatalog, Context } from "@a2ui/lit/v0_9"; // defines the elements
import { renderMarkdown } from "@a2ui/markdown-it";
import { A2uiClientMessageSchema, A2uiMessageSchema, MessageProcessor } from "@a2ui/web_core/v0_9";
import { ContextProvider } from "@lit/context";
import { converse, custom } from "./conversation.mjs";

const main = document.querySelector("main");
new ContextProvider(main, { context: Context.markdown, initialValue: renderMarkdown });

const versions = new Map(); // the version that the agent speaks on each surface: the answer is in the same

const processor = new MessageProcessor([basicCatalog], (action) => {
  // Both schemas are official ones that the renderer brings, and does not apply itself.
  const clientMessage = A2uiClientMessageSchema.parse({ version: versions.get(action.surfaceId), action });
  return conversation.tell({ a2ui: { requestId: crypto.randomUUID(), clientMessage } });
});
processor.onSurfaceCreated((surface) => {
  main.append(Object.assign(document.createElement("a2ui-surface"), { surface }));
});

const conversation = converse({
  carrier: custom,
  show: (message) => {
    const { version, createSurface } = A2uiMessageSchema.parse(message);
    if (createSurface) versions.set(createSurface.surfaceId, version);
    processor.processMessages([message]);
  },
});

document.querySelector("#ask").addEventListener("click", () => conversation.say("Show me a calculator"));
