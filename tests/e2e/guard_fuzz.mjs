// The official AG-UI client as the judge of many short streams: one run of HttpAgent for each, in one process.
//
//   node guard_fuzz.mjs URL COUNT      POSTs to URL/0, URL/1, … a few at a time
//
// stdout: one JSON line a stream, {"index", "accepted", "error"}: whether the run was gone through without a throw
// (enforce, chunk expansion, verify, apply; a RUN_ERROR is no throw), and what was thrown. A throw that nobody can
// tell the stream of has the index -1.
import { HttpAgent } from "@ag-ui/client";

const AT_ONCE = 16; // else most of the time is spent waiting for the network stack

const [url, count] = process.argv.slice(2);
console.warn = () => {}; // what it drops and strips
console.error = () => {}; // what it throws, too

const words = (error) =>
  error.issues
    ? error.issues.map((issue) => `/${issue.path.join("/")} ${issue.message}`).join("; ")
    : String(error.message ?? error);
const judge = (index, error) =>
  process.stdout.write(JSON.stringify({ index, accepted: error === null, error: error && words(error) }) + "\n");

// What rxjs hands to the host, past the promise.
for (const name of ["uncaughtException", "unhandledRejection"]) process.on(name, (error) => judge(-1, error));

let next = 0;
async function work() {
  while (next < Number(count)) {
    const index = next++;
    try {
      await new HttpAgent({ url: `${url}/${index}`, threadId: "t" }).runAgent({ runId: "r" });
      judge(index, null);
    } catch (error) {
      judge(index, error);
    }
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
await new Promise((resolve) => setTimeout(resolve, 20)); // strays surface in a later turn
