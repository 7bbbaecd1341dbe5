// The official AG-UI client as the judge of one endpoint: a POST, and everything the client makes of the answer
// (enforce, chunk expansion, verify, apply). harness.py runs it and reads what it prints.
//
//   node oracle.mjs URL < input.json        input.json: a (partial) RunAgentInput
//        [--timeout SECONDS] [--header "Name: value"]...
//
// stdout: JSON lines {"kind": "event" | "warning" | "error" | "final", ...}
// exit:   0 accepted; 1 the client refused (HTTP, decode, enforce, verify); 2 usage; 3 RUN_ERROR came;
//         4 the stream ended without RUN_FINISHED or RUN_ERROR; 6 timeout
import { readFileSync } from "node:fs";
import { EventType, HttpAgent } from "@ag-ui/client";

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const headers = {};
let url;
let timeout = 20;
for (let args = process.argv.slice(2), arg; (arg = args.shift()) !== undefined; ) {
  if (arg === "--timeout") timeout = Number(args.shift());
  else if (arg === "--header") {
    const [name, ...value] = args.shift().split(":");
    headers[name.trim()] = value.join(":").trim();
  } else if (!arg.startsWith("--") && url === undefined) url = arg;
  else {
    console.error(`unknown argument ${arg}`);
    process.exit(2);
  }
}
if (url === undefined) {
  console.error("usage: node oracle.mjs URL [--timeout SECONDS] [--header 'Name: value']... < input.json");
  process.exit(2);
}
const input = JSON.parse(readFileSync(0, "utf8") || "{}");

// What the client strips, drops, converts or cannot apply, it only warns about.
let warnings = 0;
console.warn = (...words) => {
  warnings += 1;
  print({ kind: "warning", text: words.map(String).join(" ") });
};
console.error = () => {}; // the client logs the error that it also throws
let stray; // rxjs hands some errors to the host, past the promise
for (const name of ["uncaughtException", "unhandledRejection"]) process.on(name, (error) => (stray ??= error));

const agent = new HttpAgent({
  url,
  headers,
  threadId: input.threadId ?? "e2e-thread",
  initialMessages: input.messages ?? [{ id: "e2e-user", role: "user", content: "hello" }],
  initialState: input.state ?? {},
});

let events = 0;
let terminal = null;
let runError = null;
const watcher = {
  onEvent({ event }) {
    events += 1;
    print({ kind: "event", event });
    if (event.type === EventType.RUN_STARTED) terminal = null;
    if (event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR) terminal = event.type;
    if (event.type === EventType.RUN_ERROR) runError = { message: event.message, code: event.code };
  },
};

let error = null;
let late = false;
const soft = setTimeout(() => {
  late = true;
  agent.abortRun();
}, timeout * 1000);
const hard = setTimeout(() => process.exit(6), (timeout + 5) * 1000);
try {
  await agent.runAgent(
    {
      runId: input.runId ?? "e2e-run",
      tools: input.tools ?? [],
      context: input.context ?? [],
      forwardedProps: input.forwardedProps ?? {},
      ...(input.resume && { resume: input.resume }),
    },
    watcher,
  );
} catch (thrown) {
  error = thrown;
}
await new Promise((resolve) => setTimeout(resolve, 20)); // errors handed to the host surface in a later turn
clearTimeout(soft);
clearTimeout(hard);
error ??= stray ?? null;

if (error) {
  const issues = error.issues?.map((issue) => `/${issue.path.join("/")} ${issue.message}`).join("; ");
  print({ kind: "error", text: issues ? `schema: ${issues}` : String(error.message ?? error) });
}
const code = late ? 6 : error ? 1 : runError ? 3 : terminal === null ? 4 : 0;
print({ kind: "final", events, warnings, terminal, runError, messages: agent.messages, state: agent.state });
process.exit(code);
