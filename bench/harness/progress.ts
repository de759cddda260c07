// Shows that a long bench still runs, without a line for every step.
const EVERY_MS = 10_000;

/** Prints the newest message, at most every ten seconds. The first one comes after ten seconds. */
export function nowAndThen(say: (text: string) => void): (text: string) => void {
  let saidAt = performance.now();
  return (text) => {
    if (performance.now() - saidAt < EVERY_MS) return;
    saidAt = performance.now();
    say(text);
  };
}
