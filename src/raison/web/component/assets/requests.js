// Requests and their answers, over the messages of a model as anywidget gives it: get, set, save_changes, on, send.

/** Asks over a model's messages: `{id, ask, body}` goes out, `{id, answer}` or `{id, error, truncatable, unreached}` comes back. */
export function talker(model) {
  // Two views of one widget hear each other's answers.
  const own = Math.random().toString(36).slice(2);
  const open = new Map();
  let count = 0;
  let closed = false;

  function hear(message) {
    const waiting = open.get(message.id);
    if (!waiting) return;
    open.delete(message.id);
    const { error, truncatable, unreached } = message;
    if ("error" in message) waiting.reject(Object.assign(new Error(error), { truncatable: Boolean(truncatable), unreached: Boolean(unreached) }));
    else waiting.resolve(message.answer);
  }

  function ask(what, body) {
    if (closed) return Promise.reject(new Error("The view was closed."));
    const id = `${own}-${++count}`;
    return new Promise((resolve, reject) => {
      open.set(id, { resolve, reject, what });
      model.send({ id, ask: what, body });
    });
  }

  /** Nobody waits for what was asked so far any more, or only for requests of one sort, for a reason in words. */
  function drop(said = "not waited for", only = null) {
    for (const [id, waiting] of open) {
      if (only !== null && waiting.what !== only) continue;
      open.delete(id);
      model.send({ id, drop: true });
      waiting.reject(Object.assign(new Error(said), { isDropped: true }));
    }
  }

  /** Nobody hears answers, or asks, any more. */
  function close() {
    closed = true;
    model.off("msg:custom", hear);
  }

  model.on("msg:custom", hear);
  return { ask, drop, close };
}

/** Runs the work again if it was called meanwhile, however often; a work is told by `stale()`, also after it has ended,
 * that it is not the last one any more. */
export function latest(work, interrupt) {
  let running = false;
  let wanted = 0;
  return async function run() {
    wanted += 1;
    if (running) return interrupt();
    running = true;
    try {
      let done;
      do {
        const own = wanted;
        await work(() => own !== wanted);
        done = own;
      } while (done !== wanted);
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
