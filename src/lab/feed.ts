// A sequencer's live feed of committed blocks (`GET /v1/blocks?from=H`), read until stopped, each block with its time
// of arrival. A feed that ends by itself is an error. A watcher must not take silence for "nothing was committed".
import { get } from 'node:http';
import { itemCountOf } from '../core/chain/items.js';

export interface FeedBlock {
  height: number;
  epoch: number;
  items: number;
  bytes: number;
  /** performance.now() of this process. */
  arrivedAtMs: number;
}

export interface Feed {
  stop(): void;
  /** Why the feed broke off. Null while it runs and after `stop`. */
  readonly broken: string | null;
}

const MOST_LINE = 64 * 1024 * 1024;

export function readFeed(port: number, from: number, onBlock: (block: FeedBlock) => void): Feed {
  let broken: string | null = null;
  let stopped = false;
  let rest = '';
  const fail = (why: string): void => {
    if (!stopped) broken ??= why;
  };
  const request = get({ host: '127.0.0.1', port, path: `/v1/blocks?from=${from}`, agent: false }, (response) => {
    if (response.statusCode !== 200) fail(`the feed was refused with ${response.statusCode}`);
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      const arrivedAtMs = performance.now();
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MOST_LINE) request.destroy(new Error('a line without end'));
      for (const line of lines) take(line, arrivedAtMs);
    });
    response.on('error', (error) => fail(error.message));
    response.on('close', () => fail('the feed ended'));
  });
  request.on('error', (error) => fail(error.message));

  function take(line: string, arrivedAtMs: number): void {
    try {
      const { height, epoch, data, error } = JSON.parse(line) as {
        height?: number;
        epoch?: number;
        data?: string;
        error?: { message?: string };
      };
      if (typeof height !== 'number' || typeof epoch !== 'number' || typeof data !== 'string')
        return fail(error?.message ?? 'a line that is no block');
      const bytes = Buffer.from(data, 'base64');
      onBlock({ height, epoch, items: itemCountOf(bytes), bytes: bytes.length, arrivedAtMs });
    } catch {
      fail('a line that is no block');
    }
  }

  return {
    stop: () => {
      stopped = true;
      request.destroy();
    },
    get broken() {
      return broken;
    },
  };
}
