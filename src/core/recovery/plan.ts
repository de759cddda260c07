// With which chain does a cluster below its quorum go on (docs/PROTOCOL.md section 8)? With the longest chain that any
// node or store proves. The plan says which node keeps, fills or refills its stream, and lists the doubts. Pure:
// evidence in, plan out. Invariant: every dropped block that a node or store showed is named. Without doubts, the plan
// explains everything that was shown.
import { familyOf, generationOf } from '../generation.js';
import { createHash } from 'node:crypto';
import { quorumOf } from '../protocol/quorum.js';
import {
  DEFAULT_AGREED,
  displaced,
  firstConfiguration,
  newest as newestOf,
  type Configuration,
  type Member,
} from '../protocol/configuration.js';
import {
  recoveryExpectation,
  type Epoch,
  type Hash,
  type HeadFacts,
  type Height,
  type NodeView,
  reached,
} from '../protocol/types.js';

/** A verified block without its payload. */
export interface Link {
  height: Height;
  hash: Hash;
  parent: Hash;
  epoch: Epoch;
}

/** Blocks floor+1 … top, linked, every hash recomputed. */
export interface Chain {
  floor: Height;
  floorHash: Hash;
  links: readonly Link[];
}

export interface NodeEvidence {
  id: string;
  url: string;
  /** Null when it did not answer. `why` says at which step. */
  view: NodeView | null;
  /** Null when it has nothing usable. `why` says what is wrong. */
  chain: Chain | null;
  why: string;
}

/** A running sequencer's own chain: every block in it was committed (I10). */
export interface StoreEvidence {
  id: string;
  url: string;
  cluster: string;
  chain: Chain | null;
  why: string;
}

export interface Evidence {
  nodes: readonly NodeEvidence[];
  stores: readonly StoreEvidence[];
}

export interface NodePlan {
  id: string;
  url: string;
  action: 'keep' | 'fill' | 'refill' | 'left-out';
  /** One sentence: its blocks, and how they relate to the chain. */
  finding: string;
  /** What recover_node compares; '' when left out. */
  expect: string;
  facts: HeadFacts;
  fillFrom: Height;
}

export interface RecoveryPlan {
  /** The next generation, `<id>.<g+1>`. */
  cluster: string;
  /** Above every epoch seen anywhere. */
  epoch: Epoch;
  top: { height: Height; hash: Hash };
  chain: Chain;
  /** Where payloads come from: the node, and from `storeFrom` on the store. */
  source: { node: string; store: string; storeFrom: Height };
  nodes: NodePlan[];
  stores: { id: string; url: string; finding: string }[];
  /** Why this may lose blocks, unlike a restart. Empty: one confirmation is enough. */
  doubts: string[];
  /** The first configuration of the new generation, in which no memory is named yet. */
  configuration: Configuration;
  digest: string;
}

export type RecoveryDecision =
  /** A quorum is admitted. The leader fills the nodes of an older generation. */
  | {
      outcome: 'not-needed';
      cluster: string;
      admitted: string[];
      rejoin: { id: string; url: string; expect: string; epoch: Epoch }[];
    }
  | {
      outcome: 'impossible';
      code: 'NO_QUORUM' | 'NOT_INITIALISED' | 'NODE_MOVED' | 'NOTHING_TO_RECOVER_FROM';
      why: string;
    }
  | { outcome: 'plan'; plan: RecoveryPlan };

/** Marks of interrupted recoveries. */
export const RECOVERY_NONCE = 'rec-';

type Impossible = Extract<RecoveryDecision, { outcome: 'impossible' }>;
type Shown = NodeEvidence & { view: NodeView };

/** What the evidence says about one cluster. */
interface Scene {
  /** Its name as it is known so far: of any generation, '' when nobody knows it. */
  cluster: string;
  quorum: number;
  nodes: readonly NodeEvidence[];
  /** The nodes that answered. */
  seen: readonly Shown[];
  /** Those of them that are empty or belong to this cluster. */
  ours: readonly Shown[];
  /** Without the chains of other clusters. */
  stores: readonly StoreEvidence[];
  /** The newest generation that a node names. */
  newest: number;
}

/** `named`: the cluster's name on nodes or in the configuration. '' when every record is gone; then stores name it. */
export function decideRecovery(evidence: Evidence, named: string): RecoveryDecision {
  const scene = sceneOf(evidence, named);
  const moved = movedNode(scene);
  if (moved !== null) return moved;
  const rest = notNeeded(scene);
  if (rest !== null) return rest;
  const missing = nothingToDecide(scene);
  if (missing !== null) return missing;
  const chosen = chooseChain(scene.ours, scene.stores);
  if (chosen === null)
    return impossible('NOTHING_TO_RECOVER_FROM', 'no node and no reachable store holds a chain that can be verified');
  return { outcome: 'plan', plan: planOf(scene, chosen) };
}

function sceneOf({ nodes, stores: shown }: Evidence, named: string): Scene {
  const cluster = named !== '' ? named : (shown.find((store) => store.chain !== null)?.cluster ?? '');
  const stores = shown.map((store) =>
    store.chain === null || familyOf(store.cluster) === familyOf(cluster)
      ? store
      : { ...store, chain: null, why: `it belongs to cluster ${store.cluster}` },
  );
  const seen = nodes.filter((node) => node.view !== null) as Shown[];
  const ours = seen.filter(
    ({ id, view }) => view.cluster === '' || (familyOf(view.cluster) === familyOf(cluster) && view.node === id),
  );
  const newest = Math.max(0, ...ours.map((node) => generationOf(node.view.cluster)));
  return { cluster, quorum: quorumOf(nodes.length), nodes, seen, ours, stores, newest };
}

function impossible(code: Impossible['code'], why: string): Impossible {
  return { outcome: 'impossible', code, why };
}

function movedNode({ nodes, ours }: Scene): Impossible | null {
  const [elsewhere] = displaced(
    nodes.map((node) => ({
      ...node,
      view: node.view && { config: ours.some(({ id }) => id === node.id) ? node.view.config : '' },
    })),
  );
  if (elsewhere === undefined) return null;
  return impossible(
    'NODE_MOVED',
    `${elsewhere.id} was moved to ${elsewhere.to}: what is at ${elsewhere.url} is not that node; ` +
      'name it by its new address',
  );
}

/** A quorum of the newest generation is admitted: the cluster goes on by itself. */
function notNeeded({ cluster, newest, ours, quorum }: Scene): RecoveryDecision | null {
  const current = `${familyOf(cluster)}.${newest}`;
  const admitted = ours.filter((node) => node.view.admission === 'admitted' && node.view.cluster === current);
  if (admitted.length < quorum) return null;
  const behind = ours.filter((node) => node.view.cluster !== '' && node.view.cluster !== current);
  return {
    outcome: 'not-needed',
    cluster: current,
    admitted: admitted.map((node) => node.id),
    rejoin: behind.map(({ id, url, view }) => ({ id, url, expect: recoveryExpectation(view), epoch: view.epoch })),
  };
}

/** Too few nodes answered, or there is no cluster yet. */
function nothingToDecide({ cluster, nodes, seen, ours, stores, quorum }: Scene): Impossible | null {
  if (ours.length < quorum)
    return impossible(
      'NO_QUORUM',
      `${ours.length} of ${nodes.length} nodes show what they hold of this cluster, ${quorum} are needed: ` +
        'a recovery on fewer could meet a quorum that still acts',
    );
  const empty =
    ours.length === seen.length &&
    seen.every((node) => node.view.admission === 'pristine') &&
    stores.every((store) => store.chain === null);
  if (cluster !== '' && !empty) return null;
  return impossible('NOT_INITIALISED', 'every node that answered is empty, and no store holds a chain');
}

function planOf(scene: Scene, { chain, source }: Pick<RecoveryPlan, 'chain' | 'source'>): RecoveryPlan {
  const top = topOf(chain);
  const nodes = planNodes(scene, chain);
  const stores = findStores(scene, chain);
  const epoch = nextEpoch(scene);
  const plan = {
    cluster: nextGeneration(scene),
    epoch,
    top: { height: top.height, hash: top.hash },
    chain,
    source,
    nodes: nodes.map((one) => one.plan),
    stores: stores.map((one) => one.found),
    doubts: [...nodes, ...stores].flatMap(({ doubt }) => (doubt === '' ? [] : [doubt])),
    configuration: nextConfiguration(scene, epoch),
  };
  return { ...plan, digest: digestOf(plan) };
}

/** What becomes of each node, and what may be lost with that. */
function planNodes(scene: Scene, chain: Chain): { plan: NodePlan; doubt: string }[] {
  const { nodes, ours, stores, quorum } = scene;
  const below =
    stores.find(
      (store) =>
        store.chain !== null && store.chain.floor < chain.floor && hashAt(store.chain, chain.floor) === chain.floorHash,
    )?.chain ?? chain;
  const forgetful = ours.filter((node) => beingFilled(node.view));
  // A committed block is on q nodes. While fewer than q nodes lost their memory, another node still shows it.
  const enoughRemember = forgetful.length <= nodes.length - quorum;
  return nodes.map((node) => {
    if (node.view === null || !ours.some(({ id }) => id === node.id)) return leftOut(node);
    const judged = judge(node, chain, below);
    const harmless = beingFilled(node.view) && enoughRemember && !judged.doubt.startsWith('CONTRADICTS');
    return {
      plan: planNode(node as Shown, judged, chain),
      doubt: judged.doubt === '' || harmless ? '' : `${node.id} ${judged.doubt}`,
    };
  });
}

function leftOut({ id, url, view, why }: NodeEvidence): { plan: NodePlan; doubt: string } {
  const plan: NodePlan = { id, url, action: 'left-out', finding: why, expect: '', facts: blank(), fillFrom: 0 };
  if (view === null) return { plan, doubt: `${id} did not answer (${why}): it may hold a block that was acknowledged` };
  return {
    plan: { ...plan, finding: 'belongs to something else' },
    doubt: `${id} belongs to something else: ${view.admissionWhy || view.cluster}`,
  };
}

function planNode(node: Shown, { action, finding }: Pick<NodePlan, 'action' | 'finding'>, chain: Chain): NodePlan {
  const kept = action === 'refill' ? { ...chain, links: [] } : (node.chain as Chain);
  const head = topOf(kept);
  return {
    id: node.id,
    url: node.url,
    action,
    finding,
    expect: recoveryExpectation(node.view),
    facts: {
      head: head.height,
      headEpoch: head.epoch,
      headHash: head.hash,
      floor: kept.floor,
      floorHash: kept.floorHash,
    },
    fillFrom: head.height + 1,
  };
}

function findStores({ ours, stores }: Scene, chain: Chain): { found: RecoveryPlan['stores'][number]; doubt: string }[] {
  const highest = Math.max(0, ...ours.map((node) => (node.chain === null ? 0 : topOf(node.chain).height)));
  return stores.map((store) => {
    const { finding, doubt } = judgeStore(store, chain, highest);
    return {
      found: { id: store.id, url: store.url, finding },
      doubt: doubt === '' ? '' : `the store of ${store.id} ${doubt}`,
    };
  });
}

/** Nodes that lost everything cannot say which generation they were of: stores and configuration can. */
function nextGeneration({ cluster, newest, stores }: Scene): string {
  const kin = [cluster, ...stores.map((store) => store.cluster)].filter((name) => familyOf(name) === familyOf(cluster));
  return `${familyOf(cluster)}.${Math.max(newest, ...kin.map(generationOf)) + 1}`;
}

/** Above every epoch that anything shows. */
function nextEpoch({ ours, stores }: Scene): Epoch {
  const epochs = [
    ...ours.map((node) => reached(node.view.epoch)),
    ...[...ours, ...stores].flatMap((one) => one.chain?.links.map((link) => link.epoch) ?? []),
  ];
  return epochs.reduce((a, b) => Math.max(a, b), lastConfiguration(ours)?.version.epoch ?? 0) + 1;
}

function nextConfiguration({ nodes, ours }: Scene, epoch: Epoch): Configuration {
  const last = lastConfiguration(ours);
  const members = last?.members ?? nodes.map(({ id, url }) => ({ id, memory: '', url }));
  return firstConfiguration(membersOf(members, nodes), last?.settings ?? DEFAULT_AGREED, epoch);
}

function lastConfiguration(ours: readonly Shown[]): Configuration | null {
  return newestOf(...ours.map((node) => node.view.config));
}

/**
 * The chain with the highest top that nodes and stores show. At equal height a store's chain wins (it is committed),
 * otherwise the highest epoch, as in a promotion.
 */
function chooseChain(
  nodes: readonly NodeEvidence[],
  stores: readonly StoreEvidence[],
): Pick<RecoveryPlan, 'chain' | 'source'> | null {
  const all = [
    ...nodes.flatMap((node) => (node.chain === null ? [] : [{ id: node.id, chain: node.chain, store: false }])),
    ...stores.flatMap((store) => (store.chain === null ? [] : [{ id: store.id, chain: store.chain, store: true }])),
  ];
  // Of equal ones, the one with the longest range.
  const best = all.sort((a, b) => {
    const [x, y] = [topOf(a.chain), topOf(b.chain)];
    return (
      y.height - x.height ||
      Number(b.store) - Number(a.store) ||
      y.epoch - x.epoch ||
      a.chain.floor - b.chain.floor ||
      (a.id < b.id ? -1 : 1)
    );
  })[0];
  if (best === undefined) return null;
  if (!best.store)
    return { chain: best.chain, source: { node: best.id, store: '', storeFrom: Number.MAX_SAFE_INTEGER } };
  // A store shows only its newest blocks here. The blocks below come from a node whose chain it continues.
  const { floor, floorHash, links } = best.chain;
  const below = all
    .filter((one) => !one.store && one.chain.floor < floor && hashAt(one.chain, floor) === floorHash)
    .sort((a, b) => a.chain.floor - b.chain.floor)[0];
  const chain =
    below === undefined
      ? best.chain
      : {
          floor: below.chain.floor,
          floorHash: below.chain.floorHash,
          links: [...below.chain.links.filter((link) => link.height <= floor), ...links],
        };
  return { chain, source: { node: below?.id ?? '', store: best.id, storeFrom: floor + 1 } };
}

/** `below`: what a store shows of the same chain below the nodes' retained range. */
function judge(
  node: NodeEvidence & { view?: NodeView | null },
  chain: Chain,
  below: Chain,
): { action: 'keep' | 'fill' | 'refill'; finding: string; doubt: string } {
  const { view } = node as { view: NodeView };
  if (node.chain === null)
    return {
      action: 'refill',
      finding: `holds nothing to go on with: ${node.why}`,
      doubt: `holds nothing to go on with (${node.why}): what only it and a lost copy held is gone`,
    };
  const [own, top] = [topOf(node.chain), topOf(chain)];
  const state =
    view.cluster === ''
      ? 'lost its record: what it promised is not known'
      : view.admission === 'damaged'
        ? `is damaged: ${view.admissionWhy}`
        : beingFilled(view)
          ? 'had lost its memory before and was being filled again'
          : own.epoch > view.epoch && view.epoch > 0
            ? `bears epoch ${own.epoch} on its head, above its own token ${view.epoch}`
            : '';
  const says = `ends in ${name(own)}`;
  if (own.hash === top.hash) return { action: 'keep', finding: `${says}, the head of the chain`, doubt: state };
  const there = hashAt(chain, own.height);
  if (there === own.hash) {
    const behind = top.height - own.height;
    return {
      action: 'fill',
      finding: `${says}, ${behind} ${behind === 1 ? 'block' : 'blocks'} behind`,
      doubt: behind > 1 ? `is ${behind} blocks behind: more than the block that may be under way` : state,
    };
  }
  const parent = node.chain.links.at(-1)?.parent;
  if (
    there !== undefined &&
    parent !== undefined &&
    (hashAt(chain, own.height - 1) ?? hashAt(below, own.height - 1)) === parent
  ) {
    // Only the head may differ: a pending block that lost against the block of a later term, or against the block that
    // the next one proves.
    const rival = own.height === top.height && own.epoch >= top.epoch;
    return {
      action: 'refill',
      finding: `${says}; the chain has ${there.slice(0, 8)} there: its head is set aside`,
      doubt: rival
        ? `holds another block at height ${own.height} (${own.hash.slice(0, 8)}, epoch ${own.epoch}) than ` +
          `the chain (${there.slice(0, 8)})`
        : state,
    };
  }
  if (there === undefined)
    return {
      action: 'refill',
      finding: `${says}, below what the chain shows`,
      doubt: `${says}, below what the chain shows: whether it is the same chain cannot be told`,
    };
  return {
    action: 'refill',
    finding: `${says}, which is not on the chain`,
    doubt: `CONTRADICTS the chain: it ${says}, the chain has ${there.slice(0, 8)} there${parting(node.chain, chain)}`,
  };
}

/** A leader had begun to re-admit it. */
function beingFilled(view: NodeView): boolean {
  return view.admission === 'admitting' && !view.pending.startsWith(RECOVERY_NONCE);
}

function judgeStore(store: StoreEvidence, chain: Chain, highest: Height): { finding: string; doubt: string } {
  if (store.chain === null)
    return { finding: store.why, doubt: `could not be asked (${store.why}): it may hold blocks that the nodes lost` };
  const own = topOf(store.chain);
  const there = hashAt(chain, own.height);
  if (there === own.hash) {
    if (own.height > highest)
      return {
        finding: `ends in ${name(own)}, ${own.height - highest} ahead of every node: the missing blocks come from it`,
        doubt: `is ahead of every node by ${own.height - highest}: the nodes lost blocks that were acknowledged`,
      };
    return { finding: `ends in ${name(own)}, on the chain`, doubt: '' };
  }
  if (there === undefined)
    return {
      finding: `ends in ${name(own)}, below what the chain shows`,
      doubt:
        own.height === 0
          ? ''
          : `ends in ${name(own)}, below what the nodes show: whether it is the same chain cannot be told`,
    };
  return {
    finding: `ends in ${name(own)}, which is NOT on the chain`,
    doubt:
      `CONTRADICTS the chain: it ends in ${name(own)}, the chain has ${there.slice(0, 8)} ` +
      `there${parting(store.chain, chain)}`,
  };
}

/** The first height at which two chains differ, of those that both show. */
function parting(own: Chain, chain: Chain): string {
  const first = [{ height: own.floor, hash: own.floorHash }, ...own.links].find(
    ({ height, hash }) => height > 0 && (hashAt(chain, height) ?? hash) !== hash,
  );
  if (first === undefined) return '';
  const lowest = first.height === Math.max(1, own.floor, chain.floor) && first.height > 1;
  return (
    '; the first height at which they differ is ' +
    `${first.height}${lowest ? ' or lower (nothing below is shown)' : ''}: ${first.hash.slice(0, 8)} ` +
    `there, ${hashAt(chain, first.height)?.slice(0, 8)} in the chain`
  );
}

export function topOf(chain: Chain): Pick<Link, 'height' | 'hash' | 'epoch'> {
  return chain.links.at(-1) ?? { height: chain.floor, hash: chain.floorHash, epoch: 0 };
}

function linkAt(chain: Chain, height: Height): Link | undefined {
  return chain.links[height - chain.floor - 1];
}

function hashAt(chain: Chain, height: Height): Hash | undefined {
  return height === chain.floor ? chain.floorHash : linkAt(chain, height)?.hash;
}

function name(top: { height: Height; hash: Hash }): string {
  return `${top.height} (${top.hash.slice(0, 8)})`;
}

function blank(): HeadFacts {
  return { head: 0, headEpoch: 0, headHash: '', floor: 0, floorHash: '' };
}

/** No memory is named yet. A node that is named at another address than before is there now. */
function membersOf(members: readonly Member[], nodes: readonly { id: string; url: string }[]): Member[] {
  return members.map((member) => {
    const url = nodes.find(({ id }) => id === member.id)?.url ?? member.url;
    return url === member.url ? { ...member, memory: '' } : { id: member.id, memory: '', url };
  });
}

function digestOf(plan: Omit<RecoveryPlan, 'digest'>): string {
  const { cluster, epoch, top, nodes } = plan;
  return createHash('sha256')
    .update(
      JSON.stringify([cluster, epoch, top, nodes.map(({ id, action, expect, facts }) => [id, action, expect, facts])]),
    )
    .digest('hex')
    .slice(0, 16);
}
