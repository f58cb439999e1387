// What the pages share: the server's token, and requests.
const TOKEN = "raison-token";
/** People add it behind what the address has already. */
const IN_ADDRESS = /[#&]token=([^&#]*)/;

/** The token comes with the address once; then it leaves the address, which people send to each other. */
function takeToken() {
  const found = IN_ADDRESS.exec(location.hash);
  if (found) {
    sessionStorage.setItem(TOKEN, new URLSearchParams(`held=${found[1]}`).get("held"));
    const rest = location.hash.replace(IN_ADDRESS, "").replace(/^[#&]+/, "");
    history.replaceState(null, "", rest ? `#${rest}` : location.pathname);
  }
  return sessionStorage.getItem(TOKEN);
}

const token = takeToken();
// A token that is added to the address of an open page: what the page asks with is settled.
addEventListener("hashchange", () => IN_ADDRESS.test(location.hash) && location.reload());
const client = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
const headers = { "X-Raison-Client": client, ...(token ? { Authorization: `Bearer ${token}` } : {}) };

/** The answer of a request, as JSON. Throws an error with the server's line. */
export async function answered(path, options = {}) {
  const answer = await reached(path, { ...options, headers: { ...headers, ...options.headers } });
  if (answer.status === 401) throw new Error("This server asks for its token: add #token=TOKEN to the address of this page.");
  const told = await answer.json().catch(() => ({ error: `The answer (status ${answer.status}) is not the server's own.` }));
  if (!answer.ok || told.error) throw Object.assign(new Error(told.error), { truncatable: told.truncatable });
  return told;
}

/** The answer of a request, unless it was dropped. */
async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server does not answer. Try again once it runs."), { unreached: true });
  }
}

/** The answer of a request with a body. */
export function posted(path, body, signal) {
  return answered(path, { method: "POST", body: JSON.stringify(body), signal, headers: { "Content-Type": "application/json" } });
}
