// The readers, which read during the whole run: the feed of every sequencer, the nodes' streams by quorum, confirmed
// heads, and status. A reader that was cut off continues at the next height. A reader whose next block is no longer
// available starts over under a new name.
import type { IncomingMessage } from 'node:http';
import { blockHash } from '../../core/chain/block.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import { tailBlocks } from '../../core/stream/tail.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { httpCall, openRequest, targetOf } from '../../core/http-call.js';
import type { CommittedBlock, NodePort } from '../../core/ports.js';
import type { Prng } from './prng.js';
import type { Recorder } from './recorder.js';

const AGAIN_MS = 50;
const ASK_LIMIT_MS = 3000;

/** Follows `/v1/blocks?from=` of one sequencer until stopped, also across its restarts. */
export async function readFeedOf(name: string, url: string, record: Recorder, signal: AbortSignal): Promise<void> {
  let next = 1;
  while (!signal.aborted) {
    try {
      for await (const block of feed(url, next, signal)) {
        if (blockHash(block) !== block.hash)
          record.trouble(name, 'answer', `its feed gave block ${block.height} with a hash that is not the block's`);
        record.block(`feed of ${name}`, block);
        next = block.height + 1;
      }
    } catch {
      // The sequencer was killed, paused or restarted: that is the purpose of the run. What it said counts; its absence
      // does not.
    }
    await rest(AGAIN_MS, signal);
  }
}

async function* feed(url: string, from: number, signal: AbortSignal): AsyncGenerator<CommittedBlock> {
  const request = openRequest(targetOf(url, `/v1/blocks?from=${from}`) as URL, {});
  const stop = (): void => void request.destroy(new Error('stopped'));
  signal.addEventListener('abort', stop, { once: true });
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.on('error', reject);
      request.end();
    });
    if (response.statusCode !== 200) throw new Error(`refused with ${response.statusCode}`);
    let parts: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) {
      let at = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, at)) {
        parts.push(chunk.subarray(at, end));
        const line = JSON.parse(Buffer.concat(parts).toString('utf8')) as Omit<CommittedBlock, 'data'> & {
          data?: string;
          error?: unknown;
        };
        parts = [];
        at = end + 1;
        if (line.data === undefined) throw new Error('the feed ended with an error');
        yield { ...line, data: Buffer.from(line.data, 'base64') };
      }
      if (at < chunk.length) parts.push(chunk.subarray(at));
    }
  } finally {
    signal.removeEventListener('abort', stop);
    request.destroy();
  }
}

/** Follows the nodes' streams by quorum, without sequencers and proxies, as `seq stream tail --follow` does. */
export async function readNodes(
  nodes: readonly NodePort[],
  limitMs: number,
  record: Recorder,
  signal: AbortSignal,
): Promise<void> {
  let from: number | 'floor' = 1;
  for (let session = 1; !signal.aborted;) {
    try {
      for await (const block of tailBlocks({ nodes, limitMs, clock: systemClock, signal, from, follow: true })) {
        record.block(session === 1 ? 'tail of the nodes' : `tail of the nodes (${session})`, block);
        from = block.height + 1;
      }
    } catch (error) {
      const code = error instanceof SeqError ? error.code : 'BUG';
      if (code === 'CHAIN_MISMATCH') record.trouble('tail of the nodes', 'answer', (error as Error).message);
      else if (!(error instanceof SeqError))
        record.trouble('tail of the nodes', 'bug', (error as Error).stack ?? String(error));
      // Blocks were trimmed while no quorum could be read; the feeds have them. From the floor on a new sequence of
      // heights begins.
      if (error instanceof SeqError && error.exit !== EXIT.noQuorum) {
        from = 'floor';
        session++;
      }
    }
    await rest(AGAIN_MS * 4, signal);
  }
}

/** Asks for the confirmed head. It mostly asks the presumed leader, because only the leader can confirm it. */
export async function readHeads(
  sequencers: readonly { name: string; url: string }[],
  everyMs: number,
  prng: Prng,
  record: Recorder,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const leader = prng.chance(0.7) ? sequencers.find(({ name: one }) => one === record.leader?.name) : undefined;
    const { name, url } = leader ?? prng.pick(sequencers);
    const from = record.now();
    const body = await ask(url, '/v1/head', signal);
    if (body !== null)
      record.add({
        is: 'head',
        from,
        t: record.now(),
        who: name,
        height: Number(body['height']),
        hash: String(body['hash']),
        epoch: Number(body['epoch']),
      });
    await rest(everyMs, signal);
  }
}

export async function readStatus(
  name: string,
  url: string,
  everyMs: number,
  record: Recorder,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const from = record.now();
    const body = await ask(url, '/v1/status', signal);
    if (body !== null) {
      record.status({
        is: 'status',
        from,
        t: record.now(),
        who: name,
        height: Number(body['height']),
        hash: String(body['hash']),
        role: String(body['role']),
        epoch: Number(body['epoch']),
        leaseMs: Number(body['leaseMs']),
      });
    }
    await rest(everyMs, signal);
  }
}

async function ask(url: string, path: string, signal: AbortSignal): Promise<{ [name: string]: unknown } | null> {
  const answer = await httpCall({
    url,
    path,
    limitMs: ASK_LIMIT_MS,
    connectMs: ASK_LIMIT_MS,
    maxReplyBytes: 1024 * 1024,
    signal,
  });
  return answer.outcome === 'answered' && answer.status === 200
    ? (JSON.parse(answer.body.toString('utf8')) as { [name: string]: unknown })
    : null;
}

export function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}
