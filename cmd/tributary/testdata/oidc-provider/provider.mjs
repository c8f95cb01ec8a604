// An identity provider for the sign-in test: npm's oidc-provider with its own
// defaults. Anybody signs in under the name typed into its form, which becomes
// the subject and the e-mail address; only UserInfo tells the address, as is its
// habit. Called with: folder of node_modules, port, client id, secret, redirect.
const [folder, port, client, secret, redirect] = process.argv.slice(2);
const { Provider } = await import(`${folder}/node_modules/oidc-provider/lib/index.js`);

const issuer = `http://localhost:${port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: client, client_secret: secret, redirect_uris: [redirect] }],
  claims: { email: ["email", "email_verified"] },
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({ sub: name, email: `${name}@example.test`, email_verified: name !== "unverified" }),
  }),
});
provider.listen(Number(port), "localhost", () => console.log("ready", issuer));
