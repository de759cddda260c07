// Reads request bodies within two bounds: one per request, one for all requests together. The second bound keeps many
// slow or large callers from filling the memory. A request beyond it is answered 503 at once, and its body is not read.
import type { IncomingMessage } from 'node:http';
import { HttpError, malformed, unavailable } from './envelope.js';

const SMALL_BYTES = 64 * 1024;

export class BodyReader {
  #held = 0;

  constructor(private readonly limits: { maxBodyBytes: number; maxHeldBytes: number }) {}

  get heldBytes(): number {
    return this.#held;
  }

  /** Reads the body, calls `use` with it, and releases the memory afterwards. */
  async hold<T>(request: IncomingMessage, use: (body: Buffer) => Promise<T>): Promise<T> {
    const { maxBodyBytes } = this.limits;
    const length = request.headers['content-length'];
    // NaN must not reach the sum of held bytes: the bound would never apply again.
    if (length !== undefined && !/^\d{1,15}$/.test(length))
      throw malformed('Content-Length is not a number', 'decimal digits are needed');
    const declared = length === undefined ? undefined : Number(length);
    if (declared !== undefined && declared > maxBodyBytes) throw tooLarge(maxBodyBytes);
    let mine = 0;
    const take = (bytes: number) => {
      if (this.#held + bytes > this.limits.maxHeldBytes)
        throw unavailable(
          'BUSY',
          'too many submissions are being held',
          `request bodies waiting for their commit fill ${this.limits.maxHeldBytes} bytes`,
        );
      this.#held += bytes;
      mine += bytes;
    };
    try {
      take(declared ?? 0);
      if (declared !== undefined && declared <= SMALL_BYTES)
        return await use(exactly(await arrived(request), declared));
      const chunks: Buffer[] = [];
      let size = 0;
      // The socket stays open after an early stop, because the refusal must still reach the caller.
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > maxBodyBytes) throw tooLarge(maxBodyBytes);
        if (size > mine) take(size - mine);
        chunks.push(chunk);
      }
      return await use(exactly(joined(chunks), declared ?? size));
    } finally {
      this.#held -= mine;
    }
  }
}

/**
 * A small body with a declared length. It is never refused half-way. A stream's iterator would cost more than all the
 * rest.
 */
function arrived(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => resolve(joined(chunks)));
    request.once('error', reject);
    request.once('close', () => {
      if (!request.readableEnded) reject(new Error('the connection was closed'));
    });
  });
}

function joined(chunks: Buffer[]): Buffer {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function exactly(body: Buffer, declared: number): Buffer {
  if (body.length !== declared) throw malformed('the body ended early', `${body.length} of ${declared} bytes arrived`);
  return body;
}

function tooLarge(limit: number): HttpError {
  return new HttpError({
    status: 413,
    code: 'BODY_TOO_LARGE',
    message: `the body is larger than ${limit} bytes`,
    why: 'a request is held in memory until it is committed',
    next: ['send fewer items per request'],
    retryable: false,
    facts: { limit },
  });
}
