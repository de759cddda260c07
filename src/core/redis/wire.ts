// What goes over one established connection: commands written at once and at most once, answers matched to them in
// order (docs/PROTOCOL.md section 11). ioredis resolves, connects, encrypts and authenticates; on what it has opened,
// its own way from a command to its answer costs more processor time than the server needs for a SET, so that commits
// take this one. Nothing is queued, nothing is resent.
import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import { ReplyParser, ReplyError } from './reply-parser.js';

export type Part = string | Buffer | number;
export type Piece = string | Buffer;

interface Waiting {
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
  /** Of an exchange: what was answered so far, and how many answers it is complete with. */
  answers: unknown[] | null;
  count: number;
  /** All its answers, if they come as they were foreseen. */
  foreseen: Buffer | null;
}

/** Above this, bytes are handed to the socket where they lie; below, joining costs less than another piece. */
export const JOIN_BYTES = 16 * 1024;
const COMPACT_AT = 1024;

export class Wire {
  private socket: Socket | null = null;
  private waiting: Waiting[] = [];
  private first = 0;
  private lost: Error | null = null;

  /** After SUBSCRIBE: what comes without having been asked for. */
  onMessage: ((channel: string, message: string) => void) | null = null;

  /**
   * At the first `send`, `redis` is ready and nothing is under way on it; from then on it only says when the
   * connection ends.
   */
  constructor(readonly redis: Redis) {}

  /** Sends one command now; rejects at once when the connection is not there. */
  send(name: string, args: readonly Part[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const socket = this.socket ?? this.takeOver();
      if (this.lost !== null || !socket.writable) {
        reject(this.lost ?? new Error('the connection was lost'));
        return;
      }
      this.waiting.push({ resolve, reject, answers: null, count: 1, foreseen: null });
      write(socket, encoded(name, args));
    });
  }

  /**
   * Sends commands that were `encoded`, in one piece; resolves with all their answers, an error that the server sent
   * being one of them. Where the
   * bytes of all answers are `foreseen` and come like that, null: reading them one by one would tell nothing new.
   */
  exchange(pieces: readonly Piece[], count: number): Promise<unknown[]>;
  exchange(pieces: readonly Piece[], count: number, foreseen: Buffer | null): Promise<unknown[] | null>;
  exchange(pieces: readonly Piece[], count: number, foreseen: Buffer | null = null): Promise<unknown[] | null> {
    return new Promise((resolve, reject) => {
      const socket = this.socket ?? this.takeOver();
      if (this.lost !== null || !socket.writable) {
        reject(this.lost ?? new Error('the connection was lost'));
        return;
      }
      this.waiting.push({ resolve: resolve as (reply: unknown) => void, reject, answers: [], count, foreseen });
      write(socket, pieces.length === 1 ? pieces : joined(pieces));
    });
  }

  /** What `work` sends goes out together. */
  together<T>(work: () => T): T {
    const socket = this.socket ?? this.takeOver();
    socket.cork();
    try {
      return work();
    } finally {
      socket.uncork();
    }
  }

  private takeOver(): Socket {
    const socket = (this.redis as unknown as { stream: Socket }).stream;
    this.socket = socket;
    const parser = new ReplyParser((reply) => this.answered(reply));
    socket.removeAllListeners('data');
    socket.on('data', (chunk: Buffer) => {
      try {
        if (!parser.within && this.cameAsForeseen(chunk)) return;
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

  private cameAsForeseen(chunk: Buffer): boolean {
    const waits = this.waiting[this.first];
    if (waits === undefined || waits.foreseen === null || waits.answers!.length > 0 || !chunk.equals(waits.foreseen))
      return false;
    this.leave();
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
    this.leave();
    if (answers !== null) waits.resolve(answers);
    else if (reply instanceof ReplyError) waits.reject(reply);
    else waits.resolve(reply);
  }

  /** The first that waited is answered. */
  private leave(): void {
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

/** One part of a command, in the form of the protocol. */
export function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/** A command as it goes over the wire; payloads lie where they lay. */
export function encoded(name: string, args: readonly Part[]): Piece[] {
  const pieces: Piece[] = [];
  let text = `*${1 + args.length}\r\n${bulk(name)}`;
  for (const arg of args) {
    if (typeof arg === 'string') {
      text += bulk(arg);
    } else if (typeof arg === 'number') {
      text += bulk(String(arg));
    } else {
      pieces.push(`${text}$${arg.length}\r\n`, arg);
      text = '\r\n';
    }
  }
  pieces.push(text);
  return pieces;
}

/** Neighbours that are text become one. */
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

/** One buffer for what is small; large payloads go out from where they lie, without a copy. */
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
