// A2UI v0.8 in RAW events, shown by @a2ui/lit. Actions go back as tRPC-Agent-Go's clients send them: a user message
// whose text is the JSON of {"userAction": …}.
import { Data } from "@a2ui/lit/v0_8";
import * as UI from "@a2ui/lit/ui"; // defines the elements
import { ContextProvider } from "@lit/context";
import { converse, raw } from "./conversation.mjs";

// The renderer reads every key of the theme, and breaks without one. This theme adds no class anywhere.
const none = {};
const field = { container: none, element: none, label: none };
const names = (words, value) => Object.fromEntries(words.split(" ").map((word) => [word, value()]));
const theme = {
  components: {
    ...names("AudioPlayer Button Card Column Divider Icon List Row Video", () => none),
    ...names("CheckBox DateTimeInput MultipleChoice Slider TextField", () => field),
    Image: names("all icon avatar smallFeature mediumFeature largeFeature header", () => none),
    Modal: { backdrop: none, element: none },
    Tabs: { container: none, element: none, controls: { all: none, selected: none } },
    Text: names("all h1 h2 h3 h4 h5 caption body", () => none),
  },
  elements: names("a audio body button h1 h2 h3 h4 h5 iframe input p pre textarea video", () => none),
  markdown: names("p h1 h2 h3 h4 h5 ul ol li a strong em", () => []),
};

const main = document.querySelector("main");
new ContextProvider(main, { context: UI.Context.theme, initialValue: theme });

const processor = Data.createSignalA2uiMessageProcessor();
const shown = new Map();

const conversation = converse({
  carrier: raw,
  show: (message) => {
    processor.processMessages([message]);
    for (const [surfaceId, surface] of processor.getSurfaces()) {
      if (shown.get(surfaceId) === surface) continue;
      shown.set(surfaceId, surface);
      main.append(Object.assign(document.createElement("a2ui-surface"), { surfaceId, surface, processor }));
    }
  },
});

// The renderer reports what was clicked; that its paths become the values they point to is the page's part.
main.addEventListener("a2uiaction", (event) => {
  const { action, sourceComponent, sourceComponentId } = event.detail;
  const { surfaceId } = event.composedPath().find((element) => element.localName === "a2ui-surface");
  const resolve = ({ path, ...literal }) =>
    path === undefined ? Object.values(literal)[0] : processor.getData(sourceComponent, path, surfaceId);
  const userAction = {
    name: action.name,
    surfaceId,
    sourceComponentId,
    timestamp: new Date().toISOString(),
    context: Object.fromEntries((action.context ?? []).map(({ key, value }) => [key, resolve(value)])),
  };
  conversation.say(JSON.stringify({ userAction }));
});

document.querySelector("#ask").addEventListener("click", () => conversation.say("Show me a calculator"));
