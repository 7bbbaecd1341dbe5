// Front ends of the old API, as its descriptions have them: how each reads frames is theirs, how it shows them is the
// page's. `?client=` says which one this page is.
//
//   reader  fetch and a reader; splits on blank lines, needs `event:` and `data:`, switches on the event's name
//   hook    the same frames; keeps a growing state, appends every tool call, stops reading at the interrupt
//   source  EventSource with `onmessage`, which never sees a named frame
//   tokens  no opt-in: raw tokens until [DONE], anything else is JSON
const asked = new URLSearchParams(location.search);
const API = asked.get("api");
const session = asked.get("session");
const agent = asked.get("agent");

const show = (id, text) => (document.getElementById(id).textContent += text);
const set = (id, text) => (document.getElementById(id).textContent = text);
const list = (id, text) => document.getElementById(id).append(Object.assign(document.createElement("li"), { textContent: text }));
const post = (path, body, headers = {}) =>
  fetch(API + path, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

const dialog = document.getElementById("dialog");
function ask(reason, fields, answer) {
  set("reason", reason);
  set("fields", fields.map((field) => `${field.name}:${field.type}:${field.label}:${field.required}`).join());
  for (const [id, value] of [["yes", true], ["no", false]])
    document.getElementById(id).onclick = () => {
      dialog.close();
      set("status", "resumed");
      answer(value, fields[0]?.name);
    };
  dialog.show();
}

async function blocks(response, take) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += decoder.decode(value, { stream: true });
    const frames = buffer.split("\n\n");
    buffer = frames.pop();
    for (const frame of frames) if (frame.trim() && (await take(frame)) === false) return;
  }
}

const named = (frame) => {
  const event = frame.match(/^event: (.+)/m);
  const data = frame.match(/^data: (.+)/m);
  return event && data ? [event[1], JSON.parse(data[1])] : [null, null];
};

const clients = {
  async reader(message) {
    const take = (frame) => {
      const [type, event] = named(frame);
      switch (type) {
        case "text": return show("text", event.data.delta);
        case "thinking": return show("thinking", event.data.delta);
        case "code_block": return show("code", event.data.delta);
        case "tool_call": return list("calls", `${event.data.id} ${event.data.name} ${JSON.stringify(event.data.arguments)} ${event.data.status}`);
        case "tool_result": return list("results", `${event.data.id} ${event.data.name} ${event.data.result} ${event.data.is_error}`);
        case "progress": return list("progress", `${event.data.agent_name} ${event.data.step} ${event.data.current}/${event.data.total}`);
        case "agent_switch": return list("switches", `${event.data.from_agent} ${event.data.to_agent}`);
        case "error": return list("errors", `${event.data.code} ${event.data.message}`);
        case "interrupt":
          return ask(event.data.reason, event.data.fields, async (value, name) =>
            blocks(await post("/resume", { agent_id: agent, session_id: session, input: { [name]: value } }), take),
          );
        case "done": return set("status", "done");
      }
    };
    await blocks(await post("/stream", { agent_id: agent, session_id: session, message }, { "X-A2UI": "true" }), take);
  },

  async hook(message) {
    let state = { messages: "", thinking: "", toolCalls: [], interrupted: null };
    const update = (change) => {
      state = { ...state, ...change };
      set("text", state.messages);
      set("thinking", state.thinking);
      document.getElementById("calls").replaceChildren();
      for (const call of state.toolCalls) list("calls", `${call.id} ${call.name} ${JSON.stringify(call.arguments)} ${call.status}`);
      if (state.interrupted) ask(state.interrupted.reason, state.interrupted.fields, resume);
    };
    const take = (frame) => {
      const [, event] = named(frame);
      switch (event?.type) {
        case "text": return update({ messages: state.messages + event.data.delta });
        case "thinking": return update({ thinking: state.thinking + event.data.delta });
        case "tool_call": return update({ toolCalls: [...state.toolCalls, event.data] });
        case "interrupt":
          update({ interrupted: event.data });
          return false; // waits for the user, and reads no further
        case "done": return set("status", "done");
      }
    };
    const resume = async (value, name) => {
      update({ interrupted: null });
      await blocks(await post("/resume", { agent_id: agent, session_id: session, input: { [name]: value } }), take);
    };
    await blocks(await post("/stream", { agent_id: agent, session_id: session, message }, { "X-A2UI": "true" }), take);
  },

  source(message) {
    const query = new URLSearchParams({ session, agent_id: agent, ...(message === null ? {} : { message }) });
    const source = new EventSource(`${API}/stream?${query}`);
    source.onopen = () => list("progress", "open");
    const take = (event) => {
      switch (event.type) {
        case "text": return show("text", event.content);
        case "thinking": return show("thinking", event.content);
        case "code_block": return show("code", event.content);
        case "tool_call": return list("calls", `${event.name} ${JSON.stringify(event.input)}`);
        case "tool_result": return list("results", `${event.name} ${event.output} ${event.error ?? null}`);
        case "agent_switch": return list("switches", `${event.from} ${event.to}`);
        case "error": return list("errors", `${event.code} ${event.message}`);
        case "interrupt":
          return ask(event.prompt, [], async (value) =>
            blocks(await post("/resume", { session_id: session, answer: value ? "yes" : "no" }), (frame) =>
              take(JSON.parse(frame.match(/^data: (.+)/m)[1])),
            ),
          );
        case "done":
          source.close();
          return set("status", "done");
      }
    };
    source.onmessage = (message) => take(JSON.parse(message.data));
  },

  async tokens(message) {
    const take = (frame) => {
      const lines = frame.split("\n").filter((line) => line.startsWith("data: "));
      if (!lines.length) return; // a keep-alive
      const data = lines.map((line) => line.slice(6)).join("\n");
      if (data === "[DONE]") return set("status", "done");
      let event = null;
      try {
        event = JSON.parse(data);
      } catch {}
      if (typeof event?.type !== "string") return show("text", data);
      if (event.type === "thinking") show("thinking", event.data.delta);
      if (event.type === "tool_call") list("calls", `${event.data.id} ${event.data.name} ${JSON.stringify(event.data.arguments)} ${event.data.status}`);
      if (event.type === "interrupt")
        ask(event.data.reason, event.data.fields, async (value, name) =>
          blocks(await post("/resume", { agent_id: agent, session_id: session, input: { [name]: value } }), take),
        );
    };
    await blocks(await post("/stream", { agent_id: agent, session_id: session, message }), take);
  },
};

set("status", "running");
clients[asked.get("client")](asked.get("message"));
