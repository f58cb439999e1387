// Requests and their answers, over the messages of a model as anywidget gives it: get, set, save_changes, on, send.

/** Asks over a model's messages: `{id, ask, body}` goes out, `{id, answer}` or `{id, error, truncatable}` comes back. */
export function talker(model) {
  // Two views of one widget hear each other's answers.
  const own = Math.random().toString(36).slice(2);
  const open = new Map();
  let count = 0;

  function hear(message) {
    const waiting = open.get(message.id);
    if (!waiting) return;
    open.delete(message.id);
    if ("error" in message) waiting.reject(Object.assign(new Error(message.error), { truncatable: Boolean(message.truncatable) }));
    else waiting.resolve(message.answer);
  }

  function ask(what, body) {
    const id = `${own}-${++count}`;
    return new Promise((resolve, reject) => {
      open.set(id, { resolve, reject });
      model.send({ id, ask: what, body });
    });
  }

  /** Nobody waits for what was asked so far any more, for a reason in words. */
  function drop(said = "not waited for") {
    for (const [id, waiting] of open) {
      model.send({ id, drop: true });
      waiting.reject(new Error(said));
    }
    open.clear();
  }

  model.on("msg:custom", hear);
  return { ask, drop, close: () => model.off("msg:custom", hear) };
}

/** Runs the work again if it was called meanwhile, however often; the work is told by `stale()` that it was. */
export function latest(work, interrupt) {
  let running = false;
  let again = false;
  return async function run() {
    again = running;
    if (running) return interrupt();
    running = true;
    try {
      do {
        again = false;
        await work(() => again);
      } while (again);
    } finally {
      running = false;
    }
  };
}

/** The function after a pause without another call. */
export function paused(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** What a function gave for an equal argument; the last `most` answers are kept. */
export function remembered(work, most) {
  const kept = new Map();
  async function recall(argument) {
    const key = JSON.stringify(argument);
    const answer = kept.has(key) ? kept.get(key) : await work(argument);
    kept.set(key, answer);
    if (kept.size > most) kept.delete(kept.keys().next().value);
    return answer;
  }
  recall.knows = (argument) => kept.has(JSON.stringify(argument));
  return recall;
}
