// How far a long read is: on stderr, after 300 ms; a bar on a terminal, otherwise one line every 10 s.
export class StreamProgress {
  private readonly startedAt = performance.now();
  private saidAt = 0;
  private shown = false;

  constructor(private readonly what: string, private readonly quiet: boolean, private readonly say: (text: string) => void) {}

  readonly at = (done: number, total: number): void => {
    const now = performance.now();
    const terminal = Boolean(process.stderr.isTTY);
    if (this.quiet || now - this.startedAt < 300 || now - this.saidAt < (terminal ? 100 : 10_000) || (!terminal && now - this.startedAt < 10_000)) return;
    this.saidAt = now;
    this.shown = true;
    const text = `${this.what}: ${done} of ${total} heights (${Math.floor((100 * done) / Math.max(1, total))} %)`;
    this.say(terminal ? `\r\u001b[K${text}` : `${text}\n`);
  };

  /** Takes the bar away. */
  end(): void {
    if (this.shown && process.stderr.isTTY) this.say('\r\u001b[K');
  }
}
