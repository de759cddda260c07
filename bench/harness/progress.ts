// Who waits for minutes wants to see that it goes on, and not to read about every step.
const EVERY_MS = 10_000;

/** Says the newest of what it is told, at most every ten seconds; the first not before ten seconds have passed. */
export function nowAndThen(say: (text: string) => void): (text: string) => void {
  let saidAt = performance.now();
  return (text) => {
    if (performance.now() - saidAt < EVERY_MS) return;
    saidAt = performance.now();
    say(text);
  };
}
