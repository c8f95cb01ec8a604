// Check one webhook notification; copy verify() into your receiver.
//
//     API_KEY=trb_... node verify.ts SIGNATURE [SIGNATURE_NEXT] < body.json
//
// Node 22.18 and later run it as it is; for older ones compile it with tsc. It
// needs nothing but Node's own modules. With Express take the raw body:
// app.post("/hook", express.raw({ type: "application/json" }), ...).
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

export interface Notification {
  event_type: string;
  delivered_at: string;
  resource_id: string;
  resource_url: string;
  webhook_id: string;
}

// verify checks the raw body against the values of X-Service-Hmac-SHA256 and
// X-Service-Hmac-SHA256-Next. Call it before anything parses the body.
export function verify(body: Buffer, signatures: string[], apiKey: string, maxAgeSeconds: number = 300): Notification {
  const want = createHmac("sha256", apiKey).update(body).digest();
  const known = signatures.filter((text: string) => {
    const given = Buffer.from(text.trim(), "hex");
    return given.length === want.length && timingSafeEqual(given, want);
  });
  if (apiKey === "" || known.length === 0) {
    throw new Error("the signature does not belong to this body and key");
  }
  const notification = JSON.parse(body.toString("utf8")) as Notification;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(notification.delivered_at)) {
    throw new Error("delivered_at is not of the form YYYY-MM-DDTHH:mm:ssZ");
  }
  const age = Math.abs(Date.now() - Date.parse(notification.delivered_at)) / 1000;
  if (!(age <= maxAgeSeconds)) {
    throw new Error(`delivered_at is ${Math.round(age)} s away from now`);
  }
  return notification;
}

try {
  const result = verify(readFileSync(0), process.argv.slice(2), process.env.API_KEY ?? "");
  console.log("ok", result.webhook_id);
} catch (problem) {
  console.error(String(problem));
  process.exitCode = 1;
}
