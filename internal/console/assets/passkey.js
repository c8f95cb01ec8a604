// Passkeys: asks the browser for one and puts its answer into the form, which is
// then sent like any other. Without this script the other factors work.
"use strict";

(() => {
  if (!window.PublicKeyCredential) return;
  const raw = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  const get = async (q) => {
    const key = await navigator.credentials.get({ publicKey: {
      challenge: raw(q.challenge), rpId: q.domain, userVerification: "preferred",
      allowCredentials: q.known.map((id) => ({ type: "public-key", id: raw(id) })),
    } });
    const r = key.response;
    return { id: text(key.rawId), client_data: text(r.clientDataJSON), authenticator_data: text(r.authenticatorData), signature: text(r.signature) };
  };
  const create = async (q) => {
    const key = await navigator.credentials.create({ publicKey: {
      challenge: raw(q.challenge), rp: { id: q.domain, name: "Tributary" },
      user: { id: raw(q.handle), name: q.name, displayName: q.name },
      pubKeyCredParams: q.kinds.map((alg) => ({ type: "public-key", alg })),
      excludeCredentials: q.known.map((id) => ({ type: "public-key", id: raw(id) })),
      authenticatorSelection: { residentKey: "preferred", userVerification: "preferred" }, attestation: "none",
    } });
    const r = key.response;
    return { id: text(key.rawId), client_data: text(r.clientDataJSON), authenticator_data: text(r.getAuthenticatorData()), public_key: text(r.getPublicKey()), algorithm: r.getPublicKeyAlgorithm() };
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
