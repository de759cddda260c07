// Writes commands to an established connection and matches the answers to them, in order (docs/PROTOCOL.md section 11).
// ioredis resolves, connects, encrypts and authenticates. After that, the path of ioredis from a command to its answer
// costs more processor time than the server needs for a SET. So commits take this way instead (SEQ_DISABLE=own-resp
// switches it off). A command is written at once and at most once: nothing is queued, nothing is resent.
import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import type { Part, Wire } from '../wire/wire.js';
import { encoded, type Piece } from './encode.js';
import { ReplyParser, ReplyError } from './reply-parser.js';

interface Waiting {
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
  /** The answers of an exchange so far, and how many answers complete it. A single command has null here. */
  answers: unknown[] | null;
  count: number;
  /** The bytes of all answers, where the caller expects exact bytes. */
  expected: Buffer | null;
}

/**
 * A payload of this size or more goes to the socket without a copy. Below this size, a copy costs less than another
 * piece.
 */
export const JOIN_BYTES = 16 * 1024;
/** When this many entries at the front of the queue are answered, they are removed together. */
const COMPACT_AT = 1024;

export class OwnWire implements Wire {
  private socket: Socket | null = null;
  private waiting: Waiting[] = [];
  private first = 0;
  private lost: Error | null = null;
  private gathering = false;

  onMessage: ((channel: string, message: string) => void) | null = null;

  /**
   * At the first `send`, `redis` must be ready, with no command under way. From then on `redis` only reports the end of
   * the connection.
   */
  constructor(
    readonly redis: Redis,
    /** What is sent in one turn of the event loop goes out in one piece: calls of many lanes come together. */
    private readonly gathers = false,
  ) {}

  send(name: string, args: readonly Part[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.socket ?? this.takeOver();
      if (this.lost !== null || !socket.writable) {
        reject(this.lost ?? new Error('the connection was lost'));
        return;
      }
      this.waiting.push({ resolve, reject, answers: null, count: 1, expected: null });
      this.gather(socket);
      write(socket, encoded(name, args));
    });
  }

  /**
   * Sends encoded commands in one piece. Resolves with all their answers; an error that the server sent is one of them.
   * Resolves with null when the answers are exactly the `expected` bytes, because parsing them would tell nothing new.
   */
  exchange(pieces: readonly Piece[], count: number): Promise<unknown[]>;
  exchange(pieces: readonly Piece[], count: number, expected: Buffer | null): Promise<unknown[] | null>;
  exchange(pieces: readonly Piece[], count: number, expected: Buffer | null = null): Promise<unknown[] | null> {
    return new Promise((resolve, reject) => {
      const socket = this.socket ?? this.takeOver();
      if (this.lost !== null || !socket.writable) {
        reject(this.lost ?? new Error('the connection was lost'));
        return;
      }
      this.waiting.push({ resolve: resolve as (reply: unknown) => void, reject, answers: [], count, expected });
      this.gather(socket);
      write(socket, pieces.length === 1 ? pieces : joined(pieces));
    });
  }

  together<T>(work: () => T): T {
    const socket = this.socket ?? this.takeOver();
    socket.cork();
    try {
      return work();
    } finally {
      socket.uncork();
    }
  }

  private gather(socket: Socket): void {
    if (!this.gathers || this.gathering) return;
    this.gathering = true;
    socket.cork();
    process.nextTick(() => {
      this.gathering = false;
      socket.uncork();
    });
  }

  private takeOver(): Socket {
    const socket = (this.redis as unknown as { stream: Socket }).stream;
    this.socket = socket;
    const parser = new ReplyParser((reply) => this.answered(reply));
    socket.removeAllListeners('data');
    socket.on('data', (chunk: Buffer) => {
      try {
        if (!parser.within && this.cameAsExpected(chunk)) return;
        parser.write(chunk);
      } catch (error) {
        this.end(error as Error);
        socket.destroy();
      }
    });
    socket.once('error', (error) => this.end(error));
    socket.once('close', () => this.end(new Error('the connection was lost')));
    if (socket.destroyed) this.end(new Error('the connection was lost'));
    return socket;
  }

  private cameAsExpected(chunk: Buffer): boolean {
    const waits = this.waiting[this.first];
    if (waits === undefined || waits.expected === null || waits.answers!.length > 0 || !chunk.equals(waits.expected))
      return false;
    this.removeFirst();
    waits.resolve(null);
    return true;
  }

  private answered(reply: unknown): void {
    if (this.onMessage !== null && Array.isArray(reply) && reply.length === 3 && String(reply[0]) === 'message') {
      this.onMessage(String(reply[1]), String(reply[2]));
      return;
    }
    const waits = this.waiting[this.first];
    if (waits === undefined) throw new Error('Protocol error: an answer that nobody asked for');
    const { answers } = waits;
    if (answers !== null && answers.push(reply) < waits.count) return;
    this.removeFirst();
    if (answers !== null) waits.resolve(answers);
    else if (reply instanceof ReplyError) waits.reject(reply);
    else waits.resolve(reply);
  }

  /** Removes the first entry of the queue, because it is answered. */
  private removeFirst(): void {
    this.first += 1;
    if (this.first === this.waiting.length) {
      this.waiting.length = 0;
      this.first = 0;
    } else if (this.first >= COMPACT_AT) {
      this.waiting.splice(0, this.first);
      this.first = 0;
    }
  }

  private end(error: Error): void {
    this.lost ??= error;
    const left = this.waiting.slice(this.first);
    this.waiting = [];
    this.first = 0;
    for (const waits of left) waits.reject(this.lost);
  }
}

/** Joins neighbouring texts. */
function joined(pieces: readonly Piece[]): Piece[] {
  const fewer: Piece[] = [];
  for (const piece of pieces) {
    const last = fewer.length - 1;
    const before = fewer[last];
    if (typeof piece === 'string' && typeof before === 'string') fewer[last] = before + piece;
    else fewer.push(piece);
  }
  return fewer;
}

/** Writes small pieces as one buffer, and large payloads without a copy. */
function write(socket: Socket, pieces: readonly Piece[]): void {
  let bytes = 0;
  let largest = 0;
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      bytes += Buffer.byteLength(piece);
    } else {
      bytes += piece.length;
      if (piece.length > largest) largest = piece.length;
    }
  }
  if (pieces.length === 1) {
    socket.write(pieces[0]!);
  } else if (largest >= JOIN_BYTES) {
    socket.cork();
    for (const piece of pieces) socket.write(typeof piece === 'string' ? Buffer.from(piece) : piece);
    socket.uncork();
  } else {
    const whole = Buffer.allocUnsafe(bytes);
    let at = 0;
    for (const piece of pieces) at += typeof piece === 'string' ? whole.write(piece, at) : piece.copy(whole, at);
    socket.write(whole);
  }
}
