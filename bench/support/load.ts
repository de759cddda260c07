// Closed-loop clients: each sends its next request when the last one was answered. The sides take turns, one time
// window each, so that all of them meet the same machine.
import { connect, type Socket } from 'node:net';
import { nowAndThen } from '../harness/progress.js';
import { rowOf, spread, type Spread } from '../harness/statistics.js';
import type { Row } from '../harness/words.js';

export interface Client {
  /** Sends one request; resolves to the number of items that it got acknowledged. */
  send(): Promise<number>;
  close(): void;
}

export interface LoadSide {
  name: string;
  clients: Client[];
}

export interface Load {
  rows: Row[];
  /** Items per second of `b` divided by those of `a`, round by round. */
  ratio(a: string, b: string): Spread;
  /** Items per second, the median of the rounds. */
  rate(name: string): number;
}

export async function load(
  sides: readonly LoadSide[],
  options: { rounds: number; windowMs: number; warm?: number; say?: (text: string) => void },
): Promise<Load> {
  const warm = options.warm ?? 1;
  const say = nowAndThen(options.say ?? (() => undefined));
  const samples = new Map<string, number[][]>(sides.map(({ name }) => [name, []]));
  const rates = new Map<string, number[]>(sides.map(({ name }) => [name, []]));
  const totals = new Map(sides.map(({ name }) => [name, { items: 0, seconds: 0 }]));
  for (let round = 0; round < warm + options.rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      const mine: number[] = [];
      let items = 0;
      const startedAt = performance.now();
      await Promise.all(
        side.clients.map(async (client) => {
          while (performance.now() - startedAt < options.windowMs) {
            const at = performance.now();
            // Not `items += await …`: that would add to the value from before the wait.
            const acknowledged = await client.send();
            items += acknowledged;
            mine.push(performance.now() - at);
          }
        }),
      );
      const seconds = (performance.now() - startedAt) / 1000;
      say(`${side.name}: round ${round + 1} of ${warm + options.rounds}`);
      if (round < warm) continue;
      samples.get(side.name)!.push(mine);
      rates.get(side.name)!.push(items / seconds);
      const total = totals.get(side.name)!;
      total.items += items;
      total.seconds += seconds;
    }
  }
  const of = (name: string): number[] => rates.get(name)!;
  return {
    rows: sides.map(({ name }) => rowOf(name, samples.get(name)!, totals.get(name)!.seconds, totals.get(name)!.items)),
    ratio: (a, b) => spread(of(a).map((rate, at) => of(b)[at]! / rate)),
    rate: (name) => spread(of(name)).value,
  };
}

const ANSWER_LIMIT_MS = 20_000;

/**
 * POST /v1/submit over one kept connection, without a client library, because only the sequencer is measured. If the
 * server has ended an idle connection, the next request opens a new one.
 */
export function submitClient(port: number, body: string, items: number): Client {
  const request = Buffer.from(
    `POST /v1/submit HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: ` +
      `application/x-ndjson\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  let waiting: { resolve: (count: number) => void; reject: (error: Error) => void; timer: NodeJS.Timeout } | null =
    null;
  let head = '';
  let left = -1;
  const end = (error: Error | null): void => {
    if (waiting === null) return;
    const { resolve, reject, timer } = waiting;
    waiting = null;
    clearTimeout(timer);
    const status = Number(head.slice(9, 12));
    if (error !== null) reject(error);
    else if (status === 200) resolve(items);
    else if (status === 503)
      setTimeout(resolve, 5, 0); // the sequencer is full and asks to come again
    else reject(new Error(`submit: ${head.split('\r\n')[0]}`));
  };
  const open = (): Socket => {
    const opened = connect({ port, host: '127.0.0.1', noDelay: true });
    opened.on('data', (chunk: Buffer) => {
      if (left < 0) {
        head += chunk.toString('latin1');
        const at = head.indexOf('\r\n\r\n');
        if (at < 0) return;
        const length = /\r\ncontent-length: *(\d+)/i.exec(head.slice(0, at));
        left = Number(length?.[1] ?? 0) - (head.length - at - 4);
      } else {
        left -= chunk.length;
      }
      if (left <= 0) end(null);
    });
    opened.on('error', (error) => {
      if (opened === socket) end(error);
    });
    opened.on('close', () => {
      if (opened === socket) end(new Error('submit: the connection was closed'));
    });
    return opened;
  };
  let socket = open();
  return {
    send: () =>
      new Promise((resolve, reject) => {
        head = '';
        left = -1;
        waiting = {
          resolve,
          reject,
          timer: setTimeout(() => end(new Error(`submit: no answer within ${ANSWER_LIMIT_MS} ms`)), ANSWER_LIMIT_MS),
        };
        if (!socket.writable) socket = open();
        socket.write(request);
      }),
    close: () => socket.destroy(),
  };
}

/** `count` items of this many bytes without keys, as NDJSON. */
export function itemsBody(count: number, bytes: number): string {
  const line = `${JSON.stringify({ data: 'x'.repeat(bytes) })}\n`;
  return line.repeat(count);
}
