// An OpenID provider: oidc-provider, which is certified, with clients, keys and resources of a test.
//
// Argument: a JSON object {module, port, path, keys, clients, claims, seconds}. It prints {issuer} when it listens.
// Each line of its input is a JSON object whose members replace those of the argument, as a restart would; what it
// stored stays. It prints {} once that is done.
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const settings = JSON.parse(process.argv[2]);
const { Provider } = await import(settings.module);
const SCOPES = settings.scopes;
console.warn = console.info = () => {};

let issuer;
let provider;
let answer;

function configuration() {
  return {
    clients: settings.clients.map((each) => ({ ...each, id_token_signed_response_alg: settings.keys[0].alg })),
    jwks: { keys: settings.keys },
    scopes: ["openid", "offline_access", ...SCOPES],
    cookies: { keys: ["a key of the tests"] },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (_ctx, token) => settings.claims[token.accountId ?? token.clientId],
    // What a client registers may be widened later, upon a challenge.
    extraClientMetadata: {
      properties: ["unused"],
      validator: (_ctx, _key, _value, metadata) => {
        metadata.scope = undefined;
      },
    },
    interactions: { url: (_ctx, interaction) => `${settings.path}/interaction/${interaction.uid}` },
    ttl: { ClientCredentials: settings.seconds, AccessToken: settings.seconds },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_ctx, _client, one) => one,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource, client) => ({
          audience: resource,
          scope: SCOPES.join(" "),
          accessTokenTTL: settings.seconds,
          accessTokenFormat: client.clientId.startsWith("opaque") ? "opaque" : "jwt",
          jwt: { sign: { alg: settings.keys[0].alg } },
        }),
      },
    },
  };
}

// Signs in the user whose name is that of the test, and grants what the client asks for.
async function interact(request, response) {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: settings.user, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? "");
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, params.scope ?? "");
  await provider.interactionFinished(request, response, {
    login: { accountId: settings.user },
    consent: { grantId: await grant.save() },
  });
}

function renew() {
  provider = new Provider(issuer, configuration());
  answer = provider.callback();
}

const server = createServer((request, response) => {
  if (!request.url.startsWith(settings.path)) {
    response.writeHead(404).end();
    return;
  }
  request.originalUrl = request.url;
  request.url = request.url.slice(settings.path.length) || "/";
  if (request.url.startsWith("/interaction/")) {
    interact(request, response).catch((error) => response.writeHead(500).end(String(error)));
  } else {
    answer(request, response);
  }
});

server.listen(settings.port, "127.0.0.1", () => {
  issuer = `http://127.0.0.1:${server.address().port}${settings.path}`;
  renew();
  process.stdout.write(`${JSON.stringify({ issuer })}\n`);
});
createInterface({ input: process.stdin })
  .on("line", (line) => {
    Object.assign(settings, JSON.parse(line));
    renew();
    process.stdout.write("{}\n");
  })
  .on("close", () => process.exit(0));
