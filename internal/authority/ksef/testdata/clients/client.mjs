// npm's ksef-client against the double: what it sees is printed as JSON.
// Called with: folder of node_modules, address, NIP, PKCS#12 file, its password, invoice, token.
import { readFileSync } from "node:fs";

const [folder, baseUrl, nip, p12, password, file, token] = process.argv.slice(2);
const { KsefClient, XadesKeyPair } = await import(`${folder}/node_modules/ksef-client/dist/index.js`);
const context = { type: "Nip", value: nip };
const quick = { pollIntervalMs: 50, maxAttempts: 20 };

const signed = {};
const keyPair = await XadesKeyPair.fromPkcs12File({ pkcs12Path: p12, pkcs12Password: password });
for (const signaturePackaging of ["enveloped", "enveloping"]) {
  const tokens = await new KsefClient({ baseUrl }).workflows.auth.authenticateWithCertificate({ keyPair, context, signaturePackaging, ...quick });
  signed[signaturePackaging] = Boolean(tokens.accessToken.token);
}
const client = new KsefClient({ baseUrl });
client.authManager.setTokens(await client.workflows.auth.authenticateWithKsefToken({ token, context, ...quick }));
const session = await client.workflows.sessions.online.open({ formCode: { systemCode: "FA (3)", schemaVersion: "1-0E", value: "FA" }, upoV43: true });
const sent = await session.sendInvoice({ invoice: readFileSync(file, "utf8") });
const open = await session.status();
await session.close();
const upo = await session.waitForUpo(quick);
const status = await session.status();
const list = await client.sessions.getSessionInvoices(session.referenceNumber);
const number = list.invoices[0].ksefNumber;
// A day without a time, as the client's own guide asks.
const day = (offset) => new Date(Date.now() + offset * 864e5).toISOString().slice(0, 10);
const found = await client.invoices.queryInvoiceMetadata({ subjectType: "Subject1", dateRange: { dateType: "Invoicing", from: day(-1), to: day(2) } }, 0, 10, "Desc");
const fetched = await client.invoices.getInvoice(number);
const limits = await client.limits.getContextLimits();
const subject = await client.limits.getSubjectLimits();
const rates = await client.limits.getRateLimits();
const made = await client.tokens.generateToken({ permissions: ["InvoiceRead"], description: "for a test" });
const tokens = await client.tokens.listTokens();
await client.tokens.revokeToken(made.referenceNumber);
const revoked = await client.tokens.getToken(made.referenceNumber);

console.log(JSON.stringify({
  ...signed, sent: sent.referenceNumber, open: open.status.code, status: status.status.code, good: status.successfulInvoiceCount,
  number, listed: list.invoices.map((i) => i.ksefNumber), upo, found: found.invoices.map((i) => i.ksefNumber),
  xml: typeof fetched === "string" ? fetched : fetched.xml ?? fetched.content ?? JSON.stringify(fetched),
  invoices: limits.onlineSession.maxInvoices, certificates: subject.certificate.maxCertificates, perHour: rates.invoiceSend.perHour,
  tokens: tokens.tokens.length, revoked: revoked.status,
}));
