// npm's ksef-client-ts sends a package of invoices in parts: what it sees is printed as JSON.
// Called with: folder of node_modules, address, NIP, token, invoice files.
import { readFileSync } from "node:fs";

const [folder, baseUrl, nip, token, ...files] = process.argv.slice(2);
const ksef = await import(`${folder}/node_modules/ksef-client-ts/dist/index.js`);
const client = new ksef.KSeFClient({ baseUrl, environment: "TEST", presignedUrlHosts: [new URL(baseUrl).hostname], rateLimit: null });
await client.loginWithToken(token, nip);
const zip = await ksef.createZip(files.map((file, i) => ({ fileName: `invoice-${i + 1}.xml`, content: readFileSync(file) })));
const done = await ksef.uploadBatchParsed(client, zip, { maxPartSize: 700, pollOptions: { intervalMs: 50, maxAttempts: 20 } });
const status = await client.sessionStatus.getSessionStatus(done.sessionRef);
const list = await client.sessionStatus.getSessionInvoices(done.sessionRef, 10);
const sessions = await client.sessionStatus.getSessions("Batch", 10);
console.log(JSON.stringify({
  parts: Math.ceil(zip.length / 700), status: status.status.code, good: status.successfulInvoiceCount, failed: status.failedInvoiceCount,
  listed: list.invoices.map((i) => `${i.invoiceFileName} ${i.status.code}`), upo: JSON.stringify(done.upo.parsed),
  sessions: sessions.sessions.map((s) => s.referenceNumber).includes(done.sessionRef),
}));
