// Encodes commands as the bytes of RESP2.
import type { Part } from '../wire/wire.js';

/** A part of what goes over the wire: text, or a payload that is not copied. */
export type Piece = string | Buffer;

/** One argument of a command as a bulk string. */
export function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/** As `bulk`, for text with one byte per character (digits, hashes). So no length must be measured. */
export function asciiBulk(part: string | number): string {
  const text = String(part);
  return `$${text.length}\r\n${text}\r\n`;
}

/** A whole command. Payloads stay where they are in memory. */
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
