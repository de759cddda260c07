// A deadline that is fair to the node: an answer that already lies in the socket when the timer fires is still read,
// and time in which this process itself did not run (a stalled loop, a starved machine) is not held against the
// server. Bounded: at most twice the limit. Safety never hangs on it (I9); it only keeps "unknown" from being said of
// nodes that answered.

const STALL_MS = 5;

/** Calls back after `ms`, or later by as much as the loop was stalled (at most `ms` more). Returns cancel. */
export function fairDeadline(ms: number, due: () => void): () => void {
  const at = performance.now() + ms;
  let immediate: NodeJS.Immediate | undefined;
  // Timers run before sockets are read: one turn later, whatever had arrived has been seen.
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
