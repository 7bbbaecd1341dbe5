// The official client over a WebSocket: its AbstractAgent, with a transport of our own that does no more than the rules
// of examples/websocket_endpoint.py say. What it makes of the events (verify, apply) is the client's.
//
//   node --experimental-websocket websocket_client.mjs URL < input.json
//
// stdout: one JSON line {"types", "messages", "state", "code", "error"}
import { readFileSync } from "node:fs";
import { AbstractAgent } from "@ag-ui/client";
import { Observable } from "rxjs";

let code = null;

class WebSocketAgent extends AbstractAgent {
  constructor(url, config) {
    super(config);
    this.url = url;
  }

  run(input) {
    return new Observable((observer) => {
      const socket = new WebSocket(this.url);
      socket.onopen = () => socket.send(JSON.stringify(input));
      socket.onmessage = ({ data }) => observer.next(JSON.parse(data));
      socket.onclose = (event) => {
        code = event.code;
        observer.complete();
      };
      socket.onerror = () => observer.error(new Error("the WebSocket failed"));
      return () => socket.close();
    });
  }
}

const input = JSON.parse(readFileSync(0, "utf8"));
const agent = new WebSocketAgent(process.argv[2], { initialMessages: input.messages, initialState: input.state ?? {} });
const types = [];
let error = null;
try {
  await agent.runAgent({ runId: input.runId }, { onEvent: ({ event }) => void types.push(event.type) });
} catch (thrown) {
  error = String(thrown.message ?? thrown);
}
console.log(JSON.stringify({ types, messages: agent.messages, state: agent.state, code, error }));
process.exit(0);
