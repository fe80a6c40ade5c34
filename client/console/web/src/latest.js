// Keeps one request in flight, and the latest one waiting.

/**
 * Returns a function that runs `work(argument)`. While a run is in progress, only the argument of the
 * last call is kept, and runs next: a handle that is dragged asks as fast as answers come, and never
 * queues. `done(result, argument)` and `failed(error, argument)` are told of each run.
 */
export function latest(work, done, failed) {
  let running = false;
  let waiting = null;
  let ended = false;
  async function run(argument) {
    running = true;
    try {
      const result = await work(argument);
      if (!ended) done(result, argument);
    } catch (error) {
      if (!ended) failed(error, argument);
    }
    running = false;
    if (waiting !== null && !ended) {
      const [next] = waiting;
      waiting = null;
      run(next);
    }
  }
  function ask(argument) {
    if (ended) return;
    if (running) waiting = [argument];
    else run(argument);
  }
  ask.end = () => {
    ended = true;
  };
  return ask;
}

/** Returns a function that calls `action` once nobody has called for `milliseconds`. */
export function settled(milliseconds, action) {
  let timer = 0;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), milliseconds);
  };
  call.end = () => clearTimeout(timer);
  return call;
}

/** Calls `action` now and then, `milliseconds` after the last call ended, while the page is shown. */
export function repeat(milliseconds, action) {
  let ended = false;
  let timer = 0;
  const again = async () => {
    if (ended) return;
    if (!document.hidden) await action();
    if (!ended) timer = setTimeout(again, milliseconds);
  };
  again();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
