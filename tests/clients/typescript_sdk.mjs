// Calls sealab with a TypeScript SDK, 1.x or 2.x, as the arguments say, and prints as JSON what came of it.
// Its user says yes, but to what stands only in a text.
import { createRequire } from "node:module";

const [modules, major, transport, era, url, ...programs] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const sdk =
  major === "1"
    ? {
        ...load("@modelcontextprotocol/sdk/client/index.js"),
        ...load("@modelcontextprotocol/sdk/client/stdio.js"),
        ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        asks: load("@modelcontextprotocol/sdk/types.js").ElicitRequestSchema,
        options: {},
      }
    : {
        ...load("@modelcontextprotocol/client"),
        ...load("@modelcontextprotocol/client/stdio"),
        asks: "elicitation/create",
        options: era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {},
      };

const asked = [];
const client = new sdk.Client(
  { name: "tests", version: "1" },
  { capabilities: { elicitation: { form: {} } }, ...sdk.options },
);
client.setRequestHandler(sdk.asks, (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { approve: !request.params.message.includes("only in the text of") } };
});
await client.connect(
  transport === "stdio"
    ? new sdk.StdioClientTransport({ command: "sealab" })
    : new sdk.StreamableHTTPClientTransport(new URL(url)),
);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const answers = [];
for (const code of programs) {
  answers.push(await client.callTool({ name: "execute_code", arguments: { code } }));
}
await client.close();
console.log(JSON.stringify({ tools, answers, asked }));
