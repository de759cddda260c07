// Gathers the evidence for a recovery (docs/PROTOCOL.md section 8): the blocks of every node and of every reachable
// sequencer's store, verified one by one. It only reads. A node that does not answer proves nothing. A stream with a
// damaged or unlinked entry is used only above that entry, or not at all.
import { blockHash } from '../chain/block.js';
import { errorWord, inBetween, parseObject } from '../http-answer.js';
import { httpCall } from '../http-call.js';
import type { Clock, CommittedBlock, NodePort } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import type { Entry, Hash, NodeView } from '../protocol/types.js';
import { bounded } from '../nodes/ask-all.js';
import { fetchFromPeer } from '../nodes/peer-feed.js';
import { topOf, type Chain, type Evidence, type Link, type NodeEvidence, type StoreEvidence } from './plan.js';
import { askStatus } from '../nodes/sequencer-client.js';

/** Entries of one read. Payloads are dropped at once, and only links are kept. */
const PAGE = 64;
/** A page may hold this many of the largest blocks. */
const PAGE_MS = 10_000;
/** A store is asked for blocks down to this far below the lowest node's head. */
const STORE_DEPTH = 100;
const HTTP_MS = 2000;
/** Most blocks of a store on disk, so that a store far ahead of another one still fits into memory. */
const MOST_AT_HAND = 10_000;

export interface GatherOptions {
  nodes: readonly NodePort[];
  /** The same nodes, read in whatever generation they are. */
  readers: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  /** Addresses of sequencers' HTTP servers, besides those in presence records. */
  peers: readonly string[];
  token?: string;
  signal: AbortSignal;
  /** Asks a store in another way than over HTTP. */
  askStore?: (url: string, lowest: number | null, blocks: Gathered['blocks']) => Promise<StoreEvidence>;
  /** Stores on this machine's disk. Their sequencers need not run. */
  stores?: readonly StoreAtHand[];
}

/** A store that can be read without its sequencer. */
export interface StoreAtHand {
  id: string;
  /** Where it is. */
  url: string;
  cluster: string;
  head(): { height: number; hash: Hash };
  range(from: number): Iterable<CommittedBlock>;
}

export interface Gathered extends Evidence {
  /** Blocks of the stores, by store id and height. */
  blocks: Map<string, Map<number, CommittedBlock>>;
}

export async function gather(options: GatherOptions): Promise<Gathered> {
  const nodes = await Promise.all(options.nodes.map((node) => nodeEvidence(node, options)));
  const urls = new Set(options.peers);
  const atHand = new Set(options.stores?.map((store) => store.id));
  for (const { view } of nodes)
    for (const { id, url } of view?.sequencers ?? []) if (url !== '' && !atHand.has(id)) urls.add(url);
  const tops = nodes.flatMap((node) => (node.chain === null ? [] : [topOf(node.chain).height]));
  const lowest = tops.length === 0 ? null : Math.min(...tops);
  const blocks: Gathered['blocks'] = new Map();
  const ask = options.askStore ?? ((url, from, into) => storeEvidence(url, from, into, options));
  const atHandFrom = Math.min(lowest ?? Infinity, ...(options.stores ?? []).map(headOf).filter((height) => height > 0));
  const stores = [
    ...(options.stores ?? []).map((store) => evidenceAtHand(store, atHandFrom, blocks)),
    ...(await Promise.all([...urls].map((url) => ask(url, lowest, blocks)))),
  ];
  return {
    nodes,
    stores: stores.filter((store, at) => stores.findIndex((other) => other.id === store.id) === at),
    blocks,
  };
}

async function nodeEvidence(node: NodePort, { limitMs, clock, readers }: GatherOptions): Promise<NodeEvidence> {
  const none = { id: node.id, url: node.url, view: null, chain: null };
  const reply = await bounded<NodeView>(node.call({ script: 'inspect' }, limitMs), limitMs, clock);
  if (reply.outcome !== 'accepted') return { ...none, why: describeReply(reply) };
  const view = reply.value;
  const read = await readChain(readers.find((reader) => reader.id === node.id) as NodePort, view);
  if (typeof read === 'string') return { ...none, view, why: read };
  return { ...none, view, chain: read, why: '' };
}

/** The whole stream with its hashes recomputed, or why it cannot be used. */
async function readChain(node: NodePort, view: NodeView): Promise<Chain | string> {
  let links: Link[] = [];
  let from = 0;
  for (;;) {
    const reply = await node.read({ from, to: Number.MAX_SAFE_INTEGER, limit: PAGE, data: true }, PAGE_MS);
    if (reply.outcome !== 'accepted') return describeReply(reply);
    const { entries, damaged } = reply.value;
    for (const entry of entries) {
      const last = links.at(-1);
      // The entries above a hole or a foreign entry are a chain of their own. The newest such chain counts.
      if (last !== undefined && (entry.height !== last.height + 1 || entry.parent !== last.hash)) links = [];
      links.push({ height: entry.height, hash: entry.hash, parent: entry.parent, epoch: entry.epoch });
    }
    const above = Math.max(-1, ...damaged.map((one) => one.height ?? 0));
    if (above >= (links.at(-1)?.height ?? 0) && damaged.length > 0)
      return `its newest entry is damaged: ${damaged.at(-1)?.why}`;
    const seen = Math.max(above, links.at(-1)?.height ?? 0);
    if (entries.length + damaged.length < PAGE) break;
    from = seen + 1;
  }
  const first = links[0];
  if (first !== undefined) {
    return view.length === links.length
      ? { floor: first.height - 1, floorHash: first.parent, links }
      : 'its stream has holes, or entries that are not linked';
  }
  if (view.cluster === '') return 'it holds no key of ours';
  if (view.length !== 0 || view.head !== view.floor || !/^[0-9a-f]{64}$/.test(view.floorHash))
    return `its stream is gone, its record names head ${view.head}`;
  return { floor: view.floor, floorHash: view.floorHash, links: [] };
}

async function storeEvidence(
  url: string,
  lowest: number | null,
  blocks: Gathered['blocks'],
  { token, signal }: GatherOptions,
): Promise<StoreEvidence> {
  const access = token === undefined ? {} : { token };
  const answer = await askStatus(url, access, HTTP_MS, signal);
  if (!answer.answered) return { id: url, url, cluster: '', chain: null, why: answer.why };
  const { id, cluster, height, hash } = answer.status;
  if (height === 0) return { id, url, cluster, chain: { floor: 0, floorHash: hash, links: [] }, why: '' };
  const from = Math.max(1, Math.min(lowest ?? height, height) - STORE_DEPTH);
  try {
    const first = await oneBlock(url, from, access, signal);
    const own = new Map<number, CommittedBlock>([[first.height, first]]);
    const links: Link[] = [linkOf(first)];
    if (from < height) {
      for await (const block of fetchFromPeer({ url, after: first, to: height, signal, ...access })) {
        own.set(block.height, block);
        links.push(linkOf(block));
      }
    }
    blocks.set(id, own);
    return { id, url, cluster, chain: { floor: first.height - 1, floorHash: first.parent, links }, why: '' };
  } catch (error) {
    return {
      id,
      url,
      cluster,
      chain: null,
      why: `its blocks could not be read: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

function headOf(store: StoreAtHand): number {
  try {
    return store.head().height;
  } catch {
    return 0; // The later read reports what is wrong with it.
  }
}

function evidenceAtHand(store: StoreAtHand, lowest: number, blocks: Gathered['blocks']): StoreEvidence {
  const { id, url, cluster } = store;
  const none = { id, url, cluster, chain: null };
  try {
    const { height, hash } = store.head();
    if (height === 0) return { ...none, chain: { floor: 0, floorHash: hash, links: [] }, why: '' };
    const from = Math.max(1, height - MOST_AT_HAND, Math.min(lowest, height) - STORE_DEPTH);
    const own = new Map<number, CommittedBlock>();
    const links: Link[] = [];
    for (const block of store.range(from)) {
      const last = links.at(-1);
      if (
        blockHash(block) !== block.hash ||
        block.height !== from + links.length ||
        (last !== undefined && block.parent !== last.hash)
      )
        return { ...none, why: `block ${block.height} of it is damaged` };
      own.set(block.height, block);
      links.push(linkOf(block));
    }
    const first = links[0];
    if (first === undefined || links.length < height - from + 1) return { ...none, why: 'blocks are missing in it' };
    blocks.set(id, own);
    return { ...none, chain: { floor: first.height - 1, floorHash: first.parent, links }, why: '' };
  } catch (error) {
    return { ...none, why: `its blocks could not be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

async function oneBlock(
  url: string,
  height: number,
  access: { token?: string },
  signal: AbortSignal,
): Promise<CommittedBlock> {
  const answer = await httpCall({
    url,
    path: `/v1/blocks/${height}`,
    ...access,
    limitMs: HTTP_MS,
    connectMs: HTTP_MS,
    maxReplyBytes: 32 * 1024 * 1024,
    signal,
  });
  if (answer.outcome !== 'answered') throw new Error(answer.why);
  const said = parseObject(answer.body);
  const error = errorWord(said);
  if (error) throw new Error(`it answered ${answer.status} for block ${height}: ${error.message}`);
  if (answer.status !== 200) throw new Error(inBetween(answer));
  const value = said as (Omit<CommittedBlock, 'data'> & { data: string }) | undefined;
  const block = value === undefined ? undefined : { ...value, data: Buffer.from(String(value.data), 'base64') };
  if (block === undefined || block.height !== height || !isHash(block.parent) || blockHash(block) !== block.hash)
    throw new Error(`block ${height} is not what its hash says`);
  return {
    height,
    hash: block.hash,
    parent: block.parent,
    timestamp: block.timestamp,
    epoch: block.epoch,
    data: block.data,
  };
}

function isHash(text: unknown): text is Hash {
  return typeof text === 'string' && /^[0-9a-f]{64}$/.test(text);
}

function linkOf({ height, hash, parent, epoch }: Entry | CommittedBlock): Link {
  return { height, hash, parent, epoch };
}
