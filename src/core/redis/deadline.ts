// A deadline that is fair to the node. An answer that is already in the socket when the timer fires is still read.
// Time in which this process did not run (a stalled event loop, a busy machine) does not count against the server.
// The deadline comes after at most twice the limit. Safety never depends on it (I9); it only avoids that nodes that
// answered count as unknown.

const STALL_MS = 5;

/** Calls `due` after `ms`, and later when the event loop was stalled (at most `ms` later). Returns cancel. */
export function fairDeadline(ms: number, due: () => void): () => void {
  const at = performance.now() + ms;
  let immediate: NodeJS.Immediate | undefined;
  // Timers run before sockets are read. One turn later, every answer that had arrived is read.
  const last = (): void => {
    immediate = setImmediate(due);
  };
  let timer = setTimeout(() => {
    const lateMs = performance.now() - at;
    if (lateMs < STALL_MS) last();
    else timer = setTimeout(last, Math.min(lateMs, ms));
  }, ms);
  return () => {
    clearTimeout(timer);
    if (immediate) clearImmediate(immediate);
  };
}

/**
 * A deadline for silence alone: while bytes come, it begins anew. The time that an answer takes depends on its size and
 * on the link, and bytes that flow are a sign of life.
 */
export function idleDeadline(ms: number, received: () => number, due: () => void): () => void {
  let seen = received();
  let cancel = (): void => {};
  const arm = (): void => {
    cancel = fairDeadline(ms, () => {
      const now = received();
      if (now === seen) return due();
      seen = now;
      arm();
    });
  };
  arm();
  return () => cancel();
}
