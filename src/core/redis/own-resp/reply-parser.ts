// RESP2 from a socket → replies, in order: bulk and simple strings as Buffers (payloads are binary), integers as
// numbers, errors as ReplyError. The parser continues where a chunk ended: it reads every byte once, and copies a
// payload only where the payload spans chunks. Input that is not RESP2 throws, and nothing after it can be read
// (docs/PROTOCOL.md section 11).

/** An error that the server itself sent. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

const NOTHING = Buffer.alloc(0);
const [CR, LF] = [13, 10];
const [SIMPLE, ERROR, INTEGER, BULK, ARRAY] = [43, 45, 58, 36, 42];
/** The largest string that Redis sends (proto-max-bulk-len), and more items than any answer has. */
const MOST_BULK = 512 * 1024 * 1024;
const MOST_ITEMS = 1 << 24;
const MOST_LINE = 64 * 1024;
const MOST_DEPTH = 16;
/** Strings up to this length are compared with the string at the same place of the previous list. */
const MOST_REPEATED = 48;
/** Limits of one reply, nested or not: far above a whole retained range of blocks. */
const MOST_REPLY = { items: MOST_ITEMS, bytes: 2 ** 30 };

export class ReplyParser {
  private buffer: Buffer = NOTHING;
  private at = 0;
  /** Offset after the last line that was read, including its line break. */
  private lineEnd = 0;
  /**
   * An incomplete element: its pieces so far, their total length, and the length to wait for before the next attempt
   * (0: wait for a line break).
   */
  private pieces: Buffer[] = [];
  private held = 0;
  private need = 0;
  private readonly open: { items: unknown[]; left: number }[] = [];
  /**
   * For each depth, the last complete list. The next list often repeats its strings (names of fields, an owner), and
   * then gets the same Buffers.
   */
  private readonly former: (unknown[] | undefined)[] = [];
  /** Size so far of the reply that is being read. */
  private items = 0;
  private bytes = 0;

  constructor(
    private readonly onReply: (reply: unknown) => void,
    private readonly most = MOST_REPLY,
  ) {}

  /** True in the middle of a reply. */
  get within(): boolean {
    return this.held > 0 || this.open.length > 0;
  }

  write(chunk: Buffer): void {
    let from = 0;
    while (this.held > 0) {
      const to = this.need > 0 ? from + this.need - this.held : chunk.indexOf(LF, from) + 1 || chunk.length;
      const piece = chunk.subarray(from, to);
      from += piece.length;
      this.pieces.push(piece);
      this.held += piece.length;
      if (this.held < this.need) return;
      const joined = Buffer.concat(this.pieces, this.held);
      this.pieces = [];
      this.held = 0;
      this.read(joined, 0);
      if (this.held > 0 && from >= chunk.length) return;
    }
    if (from < chunk.length) this.read(chunk, from);
  }

  private read(buffer: Buffer, from: number): void {
    this.buffer = buffer;
    this.at = from;
    while (this.at < buffer.length) {
      if (this.element()) continue;
      const rest = this.at === 0 ? buffer : buffer.subarray(this.at);
      this.pieces.push(rest);
      this.held = rest.length;
      break;
    }
    this.buffer = NOTHING;
  }

  /** Reads one element; false when a part of it is missing. */
  private element(): boolean {
    const { buffer, at } = this;
    const type = buffer[at];
    if (type === BULK) {
      const length = this.number();
      if (length === null) return false;
      if (length === -1) return this.value(null, this.lineEnd);
      if (length < 0 || length > MOST_BULK) throw new Error(`Protocol error: a string of ${length} bytes`);
      const [start, end] = [this.lineEnd, this.lineEnd + length];
      if (this.bytes + length > this.most.bytes)
        throw new Error(`Protocol error: more than ${this.most.bytes} bytes in one reply`);
      if (end + 2 > buffer.length) return this.wants(end + 2 - at);
      if (buffer[end] !== CR) throw new Error('Protocol error: a string without an end');
      this.bytes += length;
      return this.value(
        (length <= MOST_REPEATED ? this.repeated(start, length) : undefined) ?? buffer.subarray(start, end),
        end + 2,
      );
    }
    if (type === INTEGER) {
      const value = this.number();
      return value === null ? false : this.value(value, this.lineEnd);
    }
    if (type === ARRAY) {
      const length = this.number();
      if (length === null) return false;
      if (length === -1) return this.value(null, this.lineEnd);
      if (length < 0 || length > MOST_ITEMS || this.open.length >= MOST_DEPTH)
        throw new Error(`Protocol error: a list of ${length}`);
      if (length === 0) return this.value([], this.lineEnd);
      this.open.push({ items: [], left: length });
      this.at = this.lineEnd;
      return true;
    }
    if (type !== SIMPLE && type !== ERROR) throw new Error('Protocol error: no reply starts like this');
    const end = buffer.indexOf(CR, at);
    if (end < 0 || end + 2 > buffer.length) return this.wantsLine();
    return this.value(
      type === SIMPLE ? buffer.subarray(at + 1, end) : new ReplyError(buffer.toString('utf8', at + 1, end)),
      end + 2,
    );
  }

  /** The number after the type byte. Null when a part of its line is missing. */
  private number(): number | null {
    const { buffer } = this;
    let at = this.at + 1;
    const negative = buffer[at] === 45;
    if (negative) at += 1;
    const first = at;
    let value = 0;
    for (; at < buffer.length; at += 1) {
      const digit = (buffer[at] as number) - 48;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at + 2 > buffer.length) {
      this.wantsLine();
      return null;
    }
    if (buffer[at] !== CR || at === first || at - first > 19) throw new Error('Protocol error: a number was expected');
    this.lineEnd = at + 2;
    return negative ? -value : value;
  }

  private repeated(start: number, length: number): Buffer | undefined {
    const depth = this.open.length;
    const there =
      depth < 2 ? undefined : this.former[depth]?.[(this.open[depth - 1] as { items: unknown[] }).items.length];
    if (!(there instanceof Buffer) || there.length !== length) return undefined;
    const { buffer } = this;
    for (let at = length - 1; at >= 0; at -= 1) if (there[at] !== buffer[start + at]) return undefined;
    return there;
  }

  private wants(bytes: number): false {
    this.need = bytes;
    return false;
  }

  private wantsLine(): false {
    const held = this.buffer.length - this.at;
    if (held > MOST_LINE) throw new Error('Protocol error: a line without an end');
    return this.wants(0);
  }

  private value(value: unknown, next: number): true {
    this.at = next;
    let whole = value;
    for (let list = this.open.at(-1); list !== undefined; list = this.open.at(-1)) {
      list.items.push(whole);
      if (++this.items > this.most.items)
        throw new Error(`Protocol error: more than ${this.most.items} values in one reply`);
      if (--list.left > 0) return true;
      this.former[this.open.length] = list.items;
      this.open.pop();
      whole = list.items;
    }
    this.former.length = 0;
    this.items = 0;
    this.bytes = 0;
    this.onReply(whole);
    return true;
  }
}
