// A node as a bundle recorded it, behind the same port as a live node. Readers notice no difference: they get the
// answers that the node gave then. Whatever was not read when the bundle was made is unknown, never "empty". Nothing
// can be written.
import { createHash } from 'node:crypto';
import { blockHashOf } from '../chain/block.js';
import type { NodeCheckup, NodePort, OrphansRead } from '../ports.js';
import type {
  DamagedEntry,
  EntriesRead,
  Entry,
  Height,
  NodeCall,
  NodeReply,
  NodeView,
  ReplyTo,
  Unknown,
} from '../protocol/types.js';
import type { BundleFile } from './file.js';
import type { BundleLine } from './format.js';

const PIECE = 1024;

function unknown(cause: string): Unknown {
  return { outcome: 'unknown', step: 'call', cause };
}

export class BundleNode implements NodePort {
  readonly id: string;
  readonly url: string;
  readonly connectionGeneration = 0;
  recordedRttMs: number | null = null;
  private probes = 0;

  constructor(
    private readonly file: BundleFile,
    private readonly at: number,
  ) {
    const { id, url } = file.head.nodes[at] as { id: string; url: string };
    this.id = id;
    this.url = url;
  }

  call<C extends NodeCall>(call: C): Promise<ReplyTo<C>> {
    if (call.script !== 'inspect')
      return Promise.resolve({
        outcome: 'refused',
        reason: 'READONLY',
        detail: { message: 'READONLY it is a bundle' },
      });
    // Commands probe a second time when one probe does not settle the question. Later probes return the second answer
    // again.
    const { reply, rttMs } = this.own.probes[Math.min(this.probes, 1)] as {
      reply: NodeReply<NodeView>;
      rttMs: number | null;
    };
    this.probes += 1;
    this.recordedRttMs = rttMs;
    return Promise.resolve(reply as ReplyTo<C>);
  }

  backfill(): Promise<[]> {
    return Promise.resolve([]);
  }

  async read(range: {
    from: Height;
    to: Height;
    limit: number;
    data: boolean;
    newestFirst?: boolean;
  }): Promise<NodeReply<EntriesRead>> {
    const view = this.view();
    if (view === null) return unknown('it had not answered when the bundle was made');
    const { cluster } = this.file.head;
    if (view.cluster !== '' && cluster !== '' && view.cluster !== cluster)
      return { outcome: 'refused', reason: 'WRONG_CLUSTER', detail: { why: 'cluster', actual: view.cluster } };
    const { ranges } = this.file.facts;
    if (!ranges.some(({ from, to }) => from <= range.from && range.to <= to)) {
      const held = ranges.map(({ from, to }) => `${from} to ${to === Number.MAX_SAFE_INTEGER ? 'the head' : to}`);
      return unknown(`the bundle holds heights ${held.join(' and ')}, not ${range.from} to ${range.to}`);
    }
    const found: EntriesRead = { entries: [], damaged: [], lastId: '' };
    // Trimmed since it was read: the node no longer held it when the bundle was finished.
    const [low, high] = [Math.max(range.from, view.floor + 1), Math.min(range.to, this.highest(view))];
    const steps = Math.max(0, Math.ceil((high - low + 1) / PIECE));
    for (let step = 0; step < steps && found.entries.length + found.damaged.length < range.limit; step += 1) {
      const from = range.newestFirst === true ? Math.max(low, high - (step + 1) * PIECE + 1) : low + step * PIECE;
      const to = range.newestFirst === true ? high - step * PIECE : Math.min(high, from + PIECE - 1);
      const lines = await this.file.lines(from, to);
      for (let i = 0; i <= to - from; i += 1) {
        const height = range.newestFirst === true ? to - i : from + i;
        const line = lines.get(height)?.find((one) => one.read.includes(this.at));
        if (line === undefined) return unknown('it stopped answering while the bundle was made');
        this.take(line, range, found);
      }
    }
    return { outcome: 'accepted', incarnation: view.admission === 'admitted' ? view.incarnation : '', value: found };
  }

  tail(): Promise<NodeReply<EntriesRead>> {
    return Promise.resolve(unknown('a bundle does not grow'));
  }

  readAudit(limit: number): Promise<NodeReply<Record<string, string>[]>> {
    const { audit } = this.own;
    return Promise.resolve(
      audit === null
        ? unknown('the bundle does not have it')
        : audit.outcome === 'accepted'
          ? { ...audit, value: audit.value.slice(0, limit) }
          : audit,
    );
  }

  readOrphans(limit: number): Promise<NodeReply<OrphansRead>> {
    const { orphans } = this.own;
    return Promise.resolve(
      orphans === null
        ? unknown('the bundle does not have it')
        : orphans.outcome === 'accepted'
          ? { ...orphans, value: { ...orphans.value, superseded: orphans.value.superseded.slice(0, limit) } }
          : orphans,
    );
  }

  checkup(): Promise<NodeReply<NodeCheckup>> {
    return Promise.resolve(this.own.checkup ?? unknown('the bundle does not have it'));
  }

  onHint(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {
    /* the code that opened the file closes it */
  }

  private get own() {
    return this.file.facts.nodes[this.at] as BundleFile['facts']['nodes'][number];
  }

  private view(): NodeView | null {
    const [first, second] = this.own.probes;
    return second?.reply.outcome === 'accepted'
      ? second.reply.value
      : first?.reply.outcome === 'accepted'
        ? first.reply.value
        : null;
  }

  /** Above every head the file has no line, and the nodes held nothing. */
  private highest(view: NodeView): Height {
    return Math.max(view.head, this.file.highest);
  }

  private take(line: BundleLine, range: { limit: number; data: boolean }, found: EntriesRead): void {
    const entries: (Entry | DamagedEntry)[] = [];
    for (const [node, block, epoch, owner] of line.copies)
      if (node === this.at) entries.push(entryOf(line, block, epoch, owner, range.data));
    for (const [node, id, why] of line.damaged) if (node === this.at) entries.push({ id, height: line.height, why });
    for (const one of entries) {
      if (found.entries.length + found.damaged.length >= range.limit) return;
      if ('why' in one) found.damaged.push(one);
      else found.entries.push(one);
      found.lastId = 'why' in one ? one.id : `${one.height}-${one.epoch}`;
    }
  }
}

/**
 * The hash is checked here like the hash of a server's answer. The file's digest shows that the file is complete, not
 * that it is true.
 */
function entryOf(
  line: BundleLine,
  block: number,
  epoch: number,
  owner: string,
  withData: boolean,
): Entry | DamagedEntry {
  const { height } = line;
  const {
    hash,
    parent,
    timestamp,
    size,
    data: base64,
    dataSha256,
  } = line.blocks[block] as BundleLine['blocks'][number];
  const entry: Entry = { height, hash, parent, timestamp, epoch, owner, size };
  if (!withData) return entry;
  const data = base64 === undefined ? undefined : Buffer.from(base64, 'base64');
  const digest = data === undefined ? Buffer.from(dataSha256 ?? '', 'hex') : createHash('sha256').update(data).digest();
  if (blockHashOf({ height, parent, timestamp }, digest) !== hash)
    return { id: `${height}-${epoch}`, height, why: 'its hash is not that of its content' };
  return data === undefined ? entry : { ...entry, data };
}
