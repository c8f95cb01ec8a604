// Passkeys: asks the browser for one and puts its answer into the form, which is
// then sent like any other. Without this script the other factors work.
"use strict";

(() => {
  if (!window.PublicKeyCredential) return;
  const raw = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  // As toJSON of Web Authentication has it; passkeys of some password managers come without it.
  const answer = (key, response) => ({ id: text(key.rawId), rawId: text(key.rawId), type: key.type, response: { clientDataJSON: text(key.response.clientDataJSON), ...response } });

  const get = async (q) => {
    const key = await navigator.credentials.get({ publicKey: {
      challenge: raw(q.challenge), rpId: q.domain, userVerification: "preferred",
      allowCredentials: q.known.map((id) => ({ type: "public-key", id: raw(id) })),
    } });
    const r = key.response;
    return answer(key, { authenticatorData: text(r.authenticatorData), signature: text(r.signature), userHandle: text(r.userHandle ?? []) });
  };
  const create = async (q) => {
    const key = await navigator.credentials.create({ publicKey: {
      challenge: raw(q.challenge), rp: { id: q.domain, name: "Tributary" },
      user: { id: raw(q.handle), name: q.name, displayName: q.name },
      pubKeyCredParams: q.kinds.map((alg) => ({ type: "public-key", alg })),
      excludeCredentials: q.known.map((id) => ({ type: "public-key", id: raw(id) })),
      authenticatorSelection: { residentKey: "preferred", userVerification: "preferred" }, attestation: "none",
    } });
    return answer(key, { attestationObject: text(key.response.attestationObject) });
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const trouble = form.querySelector("[data-passkey-trouble]");
    for (const b of form.querySelectorAll("button")) b.hidden = false;
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      trouble.hidden = true;
      try {
        const q = JSON.parse(form.dataset.question);
        const answer = await (form.dataset.passkey === "get" ? get(q) : create(q));
        form.elements.passkey.value = JSON.stringify(answer);
        form.submit();
      } catch (error) {
        trouble.textContent = "The browser gave no passkey: " + error.message;
        trouble.hidden = false;
      }
    });
  }
})();
