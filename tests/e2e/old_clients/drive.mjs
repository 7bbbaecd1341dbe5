// One published version of the AG-UI client, run against many addresses in turn: what it shows at the end of each run.
// harness.py runs it and reads what it prints.
//
//   node drive.mjs PACKAGE < cases.json     cases.json: [{"url": …, "input": {…}}, …], a (partial) RunAgentInput each
//
// stdout: a JSON line a case {"error", "messages", "state", "interrupts", "events", "warnings"}
// `events` is what the client decoded, before it judged it; `error` what it refused it for, null if it did not.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// Not import: as an ES module of Node, 0.0.48 and 0.0.51 find no JSON patch library and apply no patch at all.
const require = createRequire(import.meta.url);
const { tap } = require("rxjs");
const { HttpAgent } = require(process.argv[2]);
const TIMEOUT = 10_000;

let warnings = [];
let stray = null; // rxjs hands some errors to the host, past the promise
console.warn = (...words) => warnings.push(words.map(String).join(" "));
console.error = console.log = console.debug = () => {}; // the client logs the error that it also throws
for (const name of ["uncaughtException", "unhandledRejection"]) process.on(name, (error) => (stray ??= error));

// The client reports what its schema refuses as a list of issues.
const words = (error) =>
  error.issues ? `schema: ${error.issues.map((issue) => `/${issue.path.join("/")} ${issue.message}`).join("; ")}` : String(error.message ?? error);

const late = (milliseconds) => new Promise((_, reject) => setTimeout(reject, milliseconds, new Error("timeout")).unref());

for (const { url, input } of JSON.parse(readFileSync(0, "utf8"))) {
  warnings = [];
  stray = null;
  const agent = new HttpAgent({
    url,
    threadId: input.threadId ?? "e2e-thread",
    initialMessages: input.messages ?? [],
    initialState: input.state ?? {},
  });
  const events = [];
  const run = agent.run.bind(agent);
  agent.run = (given) => run(given).pipe(tap((event) => events.push(event)));
  let error = null;
  try {
    const given = {
      runId: input.runId ?? "e2e-run",
      tools: input.tools ?? [],
      context: input.context ?? [],
      forwardedProps: input.forwardedProps ?? {},
      ...(input.resume && { resume: input.resume }),
    };
    await Promise.race([agent.runAgent(given), late(TIMEOUT)]);
  } catch (thrown) {
    error = thrown;
  }
  await new Promise((resolve) => setImmediate(resolve)); // errors handed to the host surface in a later turn
  await new Promise((resolve) => setTimeout(resolve, 0));
  error ??= stray;
  process.stdout.write(
    JSON.stringify({
      error: error === null ? null : words(error),
      messages: agent.messages,
      state: agent.state,
      interrupts: agent.pendingInterrupts ?? [],
      events,
      warnings,
    }) + "\n",
  );
}
process.stdout.write("", () => process.exit(0)); // when all of it is written: pipes take 64 KiB at a time
