// Does a cluster of real processes keep its promises to clients during faults? Clients submit all the time. Afterwards,
// every acknowledged item must be in the chain exactly once, at the place in its receipt, in its client's order. Stores
// must be equal and nodes identical.
import { expect } from 'vitest';
import { blockHash, genesisHash } from '../../src/core/chain/block.js';
import { decodeBlockData, itemDigest, keysOf } from '../../src/core/chain/items.js';
import type { CommittedBlock, Receipt } from '../../src/core/ports.js';
import { runSelf } from '../../src/lab/self.js';
import { differences, readStreams, type Lab } from './lab.js';

export interface Acknowledged extends Receipt {
  key: string;
  data: string;
}

const BATCH = 3;
const ANSWER_MS = 1500;
const GIVE_UP_MS = 5000;

/** One client. It sends a batch, with the same keys again until it has the receipts, and then the next batch. */
export class Traffic {
  readonly acknowledged: Acknowledged[] = [];
  /** Answers that no client should ever get. */
  readonly wrong: string[] = [];
  /** How many requests had to be sent again. */
  retries = 0;
  private running = true;
  private stoppedAt = Infinity;
  private readonly done: Promise<void>;
  private sent = 0;

  constructor(
    private readonly lab: Lab,
    private readonly name: string,
    private readonly item: (n: number) => string = (n) => `${name} says ${n}`,
  ) {
    this.done = this.run();
  }

  /** Waits until `count` more items are acknowledged. */
  async more(count: number, limitMs = 120_000): Promise<void> {
    const goal = this.acknowledged.length + count;
    await this.lab.waitFor(`${count} more items of ${this.name} (${this.acknowledged.length} so far)`, limitMs, () =>
      this.acknowledged.length >= goal || this.wrong.length > 0 ? true : undefined,
    );
    expect(this.wrong).toEqual([]);
  }

  /** Ends after the batch that is under way. A batch that gets no answer for long is abandoned. */
  async stop(): Promise<void> {
    this.running = false;
    this.stoppedAt = performance.now();
    await this.done;
    expect(this.wrong).toEqual([]);
  }

  private async run(): Promise<void> {
    let at = 0;
    while (this.running) {
      const batch = Array.from({ length: BATCH }, (_, i) => ({
        key: `${this.name}:${this.sent + i}`,
        data: this.item(this.sent + i),
      }));
      for (;;) {
        const sequencers = this.lab.sequencers.map(({ name }) => name);
        const receipts = await this.offer(sequencers[at % sequencers.length]!, batch);
        if (receipts) {
          receipts.forEach((receipt, i) => this.acknowledged.push({ ...batch[i]!, ...receipt }));
          this.sent += BATCH;
          break;
        }
        at++;
        this.retries++;
        if (performance.now() - this.stoppedAt > GIVE_UP_MS) return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  private async offer(to: string, batch: { key: string; data: string }[]): Promise<Receipt[] | null> {
    if (this.lab.state(to) === 'dead') return null;
    const answer = await this.lab.submit(to, batch, ANSWER_MS).catch(() => null);
    if (answer === null || [207, 503, 504].includes(answer.status)) return null;
    if (answer.status !== 200) {
      this.wrong.push(`${to} answered ${answer.status}: ${answer.body.slice(0, 300)}`);
      this.running = false;
      return [];
    }
    return answer.body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Receipt);
  }
}

/** The committed chain 1…to as one sequencer serves it. Every hash and link is recomputed. */
export async function chainOf(lab: Lab, name: string, to: number, cluster: string): Promise<CommittedBlock[]> {
  if (to < 1) return [];
  const answer = await lab.http(name, 'GET', `/v1/blocks?from=1&to=${to}`, { limitMs: 120_000 });
  expect(answer.status, answer.body.slice(0, 300)).toBe(200);
  let parent = genesisHash(cluster.slice(0, cluster.lastIndexOf('.')), '');
  return answer.body
    .trim()
    .split('\n')
    .map((line, at) => {
      const wire = JSON.parse(line) as Omit<CommittedBlock, 'data'> & { data: string };
      const block = { ...wire, data: new Uint8Array(Buffer.from(wire.data, 'base64')) };
      expect(block).toMatchObject({ height: at + 1, parent });
      expect(blockHash(block)).toBe(block.hash);
      parent = block.hash;
      return block;
    });
}

export interface RoutedSubmission {
  key: string;
  data: string;
  height: number;
  index: number;
}

export function itemsOf(chain: readonly CommittedBlock[]): RoutedSubmission[] {
  return chain.flatMap((block) => {
    const content = decodeBlockData(block.data);
    if (content.format !== 'items') throw new Error(`block ${block.height} is ${content.format}`);
    return content.items.map((item, index) => ({
      key: item.key ?? '',
      data: Buffer.from(item.data).toString(),
      height: block.height,
      index,
    }));
  });
}

/**
 * Waits until every running sequencer has all that was acknowledged, then checks everything that must hold. `nodes`:
 * the nodes that must be identical (default: all). Returns the chain.
 */
export async function checkAll(
  lab: Lab,
  clients: readonly Traffic[],
  options: { nodes?: string[]; tail?: boolean } = {},
): Promise<CommittedBlock[]> {
  const acknowledged = clients.flatMap((client) => client.acknowledged);
  expect(acknowledged.length).toBeGreaterThan(0);
  const last = Math.max(...acknowledged.map(({ height }) => height));
  const running = lab.sequencers.map(({ name }) => name).filter((name) => lab.state(name) === 'running');
  const heights = await Promise.all(running.map((name) => lab.waitForHeight(name, last)));
  const cluster = String((await lab.status(running[0]!))?.['cluster']);
  const chains = await Promise.all(running.map((name) => chainOf(lab, name, Math.min(...heights), cluster)));
  const [chain] = chains as [CommittedBlock[]];
  const facts = (blocks: CommittedBlock[]) => blocks.map(({ height, hash }) => `${height} ${hash}`);
  for (const other of chains.slice(1)) expect(facts(other)).toEqual(facts(chain));

  const places = chain.flatMap(({ height, data }) => keysOf(data).map((item) => ({ height, ...item })));
  expect(places.length - new Set(places.map(({ key }) => key)).size, 'items twice in the chain').toBe(0);
  const place = new Map(places.map((item) => [item.key, item]));
  for (const { key, data, height, index } of acknowledged) {
    expect(place.get(key), `acknowledged ${key}`).toEqual({
      key,
      digest: itemDigest(Buffer.from(data)),
      height,
      index,
    });
  }
  for (const client of clients) {
    const order = client.acknowledged.map(({ height, index }) => height * 1e6 + index);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  }

  const names = options.nodes ?? lab.nodes.map(({ name }) => name);
  await checkNodes(lab, names, chain, last);
  if (options.tail !== false) await checkTail(lab, itemsOf(chain), chain.length);
  return chain;
}

async function checkNodes(lab: Lab, names: string[], chain: readonly CommittedBlock[], last: number): Promise<void> {
  await lab.waitFor(
    `${names.join(', ')} to hold block ${last}`,
    120_000,
    async () => {
      const streams = await readStreams(lab, '', names).catch(() => null);
      return streams && [...streams.values()].every((entries) => (entries.at(-1)?.height ?? 0) >= last)
        ? true
        : undefined;
    },
    50,
  );
  const streams = await readStreams(lab, '', names);
  expect(differences(streams)).toEqual([]);
  for (const [name, entries] of streams) {
    entries.forEach((entry, at) => {
      expect(entry.height, `${name} has no gap`).toBe(entries[0]!.height + at);
      const block = chain[entry.height - 1];
      if (block) expect(entry.hash, `${name} at ${entry.height}`).toBe(block.hash);
    });
  }
}

/** Checks that `seq stream tail` reads the same from the nodes by quorum. */
async function checkTail(lab: Lab, items: readonly RoutedSubmission[], to: number): Promise<void> {
  const args = [
    'stream',
    'tail',
    '--items',
    '-o',
    'plain',
    '--from',
    '1',
    '--to',
    String(to),
    '--node-timeout',
    '2s',
    ...lab.nodeFlags.flatMap((node) => ['--node', node]),
  ];
  const read = await runSelf(args, { env: lab.environment(), limitMs: 120_000 });
  expect(read.code, read.stderr).toBe(0);
  expect(read.stdout.toString().trim().split('\n')).toEqual(
    items.map(({ height, index, data }) => `${height}\t${index}\t${data}`),
  );
}

/** The log of a process as objects, from a byte offset on. A line that is not JSON fails. */
export function logLines(lab: Lab, name: string, last = 100_000): Record<string, unknown>[] {
  return lab.log(name, last).map((line) => {
    try {
      return JSON.parse(line) as Record<string, unknown>;
    } catch {
      throw new Error(`${name} wrote a line that is not JSON: ${line}`);
    }
  });
}
