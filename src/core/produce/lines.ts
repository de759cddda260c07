// Cuts a child's output into lines. It never holds more than one line, and that line's length is bounded.
export class LineReader {
  private parts: Buffer[] = [];
  private length = 0;

  /**
   * `line` gets each line without its end. `tooLong` is called once a line exceeds `maxBytes`; the rest of that line is
   * skipped.
   */
  constructor(
    private readonly maxBytes: number,
    private readonly line: (text: string) => void,
    private readonly tooLong: (start: string) => void,
  ) {}

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      const end = chunk.indexOf(0x0a, at);
      const part = chunk.subarray(at, end < 0 ? chunk.length : end);
      const within = this.length <= this.maxBytes;
      this.length += part.length;
      if (this.length <= this.maxBytes) this.parts.push(part);
      else if (within) this.cut(part);
      if (end < 0) return;
      if (this.length <= this.maxBytes) this.line(Buffer.concat(this.parts).toString('utf8').replace(/\r$/, ''));
      this.parts = [];
      this.length = 0;
      at = end + 1;
    }
  }

  private cut(last: Buffer): void {
    const start = Buffer.concat([...this.parts, last])
      .subarray(0, Math.min(this.maxBytes, 200))
      .toString('utf8');
    this.parts = [];
    this.tooLong(start);
  }
}
