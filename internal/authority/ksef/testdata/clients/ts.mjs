// npm's ksef-client-ts against the double: what it sees is printed as JSON.
// Called with: folder of node_modules, address, NIP, PKCS#12 file, its password, invoice, token.
import { readFileSync } from "node:fs";

const [folder, baseUrl, nip, p12, password, file, token] = process.argv.slice(2);
const ksef = await import(`${folder}/node_modules/ksef-client-ts/dist/index.js`);
const options = { baseUrl, environment: "TEST", presignedUrlHosts: [new URL(baseUrl).hostname], rateLimit: null };

const signed = new ksef.KSeFClient(options);
await signed.loginWithPkcs12(readFileSync(p12), password, nip);
const made = await signed.tokens.generateToken({ permissions: ["InvoiceRead", "InvoiceWrite"], description: "for a test" });

const client = new ksef.KSeFClient(options);
await client.loginWithToken(token || made.token, nip);
const session = await ksef.openOnlineSession(client);
const reference = await session.sendInvoice(readFileSync(file));
const open = await client.sessionStatus.getSessionStatus(session.sessionRef);
await session.close();
const upo = await session.waitForUpoParsed({ intervalMs: 50, maxAttempts: 20 });
const status = await client.sessionStatus.getSessionStatus(session.sessionRef);
const invoice = await client.sessionStatus.getSessionInvoice(session.sessionRef, reference);
const list = await client.sessionStatus.getSessionInvoices(session.sessionRef, 10);
const failed = await client.sessionStatus.getSessionFailedInvoices(session.sessionRef, 10);
const page = await client.sessionStatus.getSessionUpo(session.sessionRef, upo.pages[0].referenceNumber);
const single = await client.sessionStatus.getInvoiceUpoByKsefNumber(session.sessionRef, invoice.ksefNumber);
const sessions = await client.sessionStatus.getSessions("Online", 10);
const found = await client.invoices.queryInvoiceMetadata({ subjectType: "Subject1", dateRange: { dateType: "Invoicing", from: new Date(Date.now() - 864e5).toISOString() } }, 0, 10, "Desc");
const fetched = await client.invoices.getInvoice(invoice.ksefNumber);
const context = await client.limits.getContextLimits();
const subject = await client.limits.getSubjectLimits();
const rates = await client.limits.getRateLimits();
const tokens = await client.tokens.queryTokens();
await client.tokens.revokeToken(made.referenceNumber);
const revoked = await client.tokens.getToken(made.referenceNumber);
let refused = "";
try {
  await new ksef.KSeFClient(options).loginWithToken(made.token, nip);
} catch (error) {
  refused = String(error.message);
}
const active = await client.activeSessions.getActiveSessions();
await client.activeSessions.revokeCurrentSession();

console.log(JSON.stringify({
  open: open.status.code, status: status.status.code, good: status.successfulInvoiceCount, failed: failed.invoices.length,
  number: invoice.ksefNumber, listed: list.invoices.map((i) => i.ksefNumber), upo: JSON.stringify(upo.parsed), page: JSON.stringify(page), single: JSON.stringify(single),
  sessions: sessions.sessions.map((s) => s.referenceNumber).includes(session.sessionRef), found: found.invoices.map((i) => i.ksefNumber),
  xml: typeof fetched === "string" ? fetched : fetched.xml ?? JSON.stringify(fetched),
  invoices: context.onlineSession.maxInvoices, certificates: subject.certificate.maxCertificates, perHour: rates.invoiceSend.perHour,
  tokens: tokens.tokens.length, revoked: revoked.status, refused, active: active.items.length,
}));
