// What is served; the component takes its place here.
const state = document.getElementById("state");
try {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch("/api/models", { headers });
  const told = await answer.json();
  state.textContent = answer.ok ? told.models.map((model) => model.name).join(", ") : told.error;
} catch (error) {
  state.textContent = error.message;
}
