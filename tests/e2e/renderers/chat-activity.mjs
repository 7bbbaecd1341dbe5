// A2UI in ACTIVITY_SNAPSHOT events, shown by CopilotKit's renderer in a chat. The page does as CopilotKit's: what it
// shows is the activity messages that the client holds, and an action goes into forwardedProps.a2uiAction.
import { defineA2UIWebComponents } from "@copilotkit/a2ui-renderer/web-components";
import { chat } from "./chat.mjs";

defineA2UIWebComponents();
const main = document.querySelector("main");
const elements = new Map();

const conversation = chat({
  subscriber: {
    onMessagesChanged: ({ messages }) => {
      for (const { id, role, activityType, content } of messages) {
        if (role !== "activity" || activityType !== "a2ui-surface") continue;
        if (!elements.has(id)) {
          elements.set(id, document.createElement("cpk-a2ui-surface"));
          main.append(elements.get(id));
        }
        elements.get(id).operations = content.a2ui_operations;
      }
    },
  },
});

main.addEventListener("a2ui-action", (event) => conversation.within({ a2uiAction: event.detail }));
main.addEventListener("a2ui-error", (event) => console.error(event.detail.message));
