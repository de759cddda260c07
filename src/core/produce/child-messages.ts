// The messages between `seq` and an exec child: one JSON object per line, version 1. This file decides what a
// well-formed answer is. Any other answer is garbage: it ends the term, never the chain.
//
// child → seq   {"type":"hello","protocol":1,"height":H}
//               At start. H is the last block that its state holds, 0 for none.
// seq → child   {"type":"committed","height":H,"hash":…,"data":base64}
//               Every block from hello.height+1 on, in order, once.
// child → seq   {"type":"ack"}
//               One for each `committed`, in order.
// seq → child   {"type":"produce","height":H,"parent":…,"epoch":E,"deadlineMs":D,"maxBytes":B,
//                "items":[{"key"?,"data":base64}]}
// child → seq   {"type":"block","height":H,"data":base64,"taken":T}
//               One for each `produce`, even when it was revoked meanwhile.
// seq → child   {"type":"revoked","reason":…}
//               The term is gone. A block under way is void.
import type { CommittedBlock, Item, ProduceRequest } from '../ports.js';

const CHILD_PROTOCOL = 1;

export type ChildMessage =
  | { type: 'hello'; height: number }
  | { type: 'ack' }
  | { type: 'block'; height: number; data: Uint8Array; taken: number }
  | { type: 'garbage'; why: string };

export function committedLine(block: CommittedBlock, data: Uint8Array): string {
  return line({ type: 'committed', height: block.height, hash: block.hash, data: base64(data) });
}

export function produceLine(request: ProduceRequest, items: readonly Item[], maxBytes: number): string {
  const { height, parent, epoch } = request;
  const wire = items.map((item) =>
    item.key === undefined ? { data: base64(item.data) } : { key: item.key, data: base64(item.data) },
  );
  return line({
    type: 'produce',
    height,
    parent,
    epoch,
    deadlineMs: Math.floor(request.deadlineMs),
    maxBytes,
    items: wire,
  });
}

export function revokedLine(reason: string): string {
  return line({ type: 'revoked', reason });
}

export function parseChildLine(text: string): ChildMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return garbage(`a line that is not JSON: ${excerpt(text)}`);
  }
  if (typeof value !== 'object' || value === null) return garbage(`a line that is not an object: ${excerpt(text)}`);
  const message = value as Record<string, unknown>;
  switch (message.type) {
    case 'hello':
      if (message.protocol !== CHILD_PROTOCOL)
        return garbage(
          `hello with protocol ${excerpt(words(message.protocol))}; this version speaks ${CHILD_PROTOCOL}`,
        );
      if (!isCount(message.height)) return garbage('hello without a height');
      return { type: 'hello', height: message.height };
    case 'ack':
      return { type: 'ack' };
    case 'block': {
      if (!isCount(message.height)) return garbage('block without a height');
      if (!isCount(message.taken)) return garbage('block without a number of taken items');
      const data = typeof message.data === 'string' ? fromBase64(message.data) : null;
      if (data === null) return garbage('block whose data is not base64');
      return { type: 'block', height: message.height, data, taken: message.taken };
    }
    default:
      return garbage(`a message of unknown type ${excerpt(words(message.type))}`);
  }
}

function line(message: object): string {
  return `${JSON.stringify(message)}\n`;
}

function base64(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

/** Strict, because Buffer skips invalid characters: half a payload would become a block. */
function fromBase64(value: string): Uint8Array | null {
  const data = Buffer.from(value, 'base64');
  return data.toString('base64') === value ? data : null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function garbage(why: string): ChildMessage {
  return { type: 'garbage', why };
}

/** Not String(): an object from the child may hold a `toString` that is no function. */
function words(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
}

function excerpt(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}
