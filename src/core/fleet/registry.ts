// Reads and changes the lane registry on the nodes (docs/PROTOCOL.md section 2, docs/decisions/0015). A change counts
// when q members that remember the registry stored it, and a reader needs the answers of q such members. So a reader
// sees every change that counted. Who the members are is agreed by the default lane.
import { quorumOf } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import { askAll } from '../nodes/ask-all.js';
import type { Clock, NodePort } from '../ports.js';
import { memoryNamed, newest, versionText, whyStray, type Configuration } from '../protocol/configuration.js';
import { describeReply } from '../protocol/describe.js';
import type { CallResult, LanesFill, NodeReply } from '../protocol/types.js';
import { entriesOf, entryText, judgeLanes, type Judged, type LaneEntry, type Lanes } from './entries.js';

export interface RegistryNodes {
  /** The members, as far as they are known. */
  nodes: readonly NodePort[];
  /** Opens a member that is not among them, or has moved. It is asked again and again: one port for one address. */
  openMember?: (member: { id: string; url: string }) => Promise<NodePort>;
  /** For one call. A large registry gets more time. */
  limitMs: number;
  clock: Clock;
}

/** What one member has. */
interface NodeLanes {
  port: NodePort;
  /** The memory that answered. */
  incarnation: string;
  /** False: it lost its memory since, and what it has may be old. */
  remembers: boolean;
  lanes: Lanes;
}

/** `lanes`, `possible` and `highest` are what the members say that remember the registry. */
export interface Registry extends Judged {
  /** Of the configuration by which it was counted. '' when there is none. */
  version: string;
  members: number;
  answers: ReadonlyMap<string, NodeLanes>;
  /** Why a member did not answer, by node. */
  silent: readonly { node: string; why: string }[];
}

type Reply = NodeReply<CallResult['read_lanes']>;

/** Entries that one call carries (lua/note_lanes.lua). */
const BATCH = 128;
/** Nobody waits for these calls: a registry of 10,000 lanes is about 1 MB. */
const LARGE_LIMIT_MS = 1000;
/** A member that was just found may know a later configuration. */
const MEMBER_ROUNDS = 3;
const ATTEMPTS = 3;

/** Asks every member. Never throws: see `requireQuorum`. */
export async function surveyRegistry(at: RegistryNodes): Promise<Registry> {
  const asked = new Map<string, { port: NodePort; reply: Reply }>();
  await ask(at, at.nodes, asked);
  let configuration: Configuration | null = null;
  for (let round = 0; round < MEMBER_ROUNDS; round += 1) {
    configuration = newest(...[...asked.values()].map(({ reply }) => configOf(reply)));
    const others = await otherPorts(at, configuration, asked);
    if (others.length === 0) break;
    await ask(at, others, asked);
  }
  const members = configuration?.members ?? at.nodes;
  const answers = new Map<string, NodeLanes>();
  const silent: { node: string; why: string }[] = [];
  for (const { id } of members) {
    const one = asked.get(id);
    const why = one === undefined ? 'nobody asked it' : whySilent(id, one.reply, configuration);
    if (why !== '') silent.push({ node: id, why });
    else answers.set(id, whatItHas(one!.port, one!.reply as Accepted));
  }
  const remembering = [...answers.values()].filter(({ remembers }) => remembers).map(({ lanes }) => lanes);
  return {
    ...judgeLanes(remembering, members.length),
    version: configuration === null ? '' : versionText(configuration.version),
    members: members.length,
    answers,
    silent,
  };
}

async function ask(
  { limitMs, clock }: RegistryNodes,
  ports: readonly NodePort[],
  asked: Map<string, { port: NodePort; reply: Reply }>,
): Promise<void> {
  const limit = Math.max(limitMs, LARGE_LIMIT_MS);
  const replies = await askAll(ports, (port) => port.call({ script: 'read_lanes' }, limit), { limitMs: limit, clock });
  ports.forEach((port, i) => asked.set(port.id, { port, reply: replies[i]! }));
}

/** A version that the node cannot know was written by hand. */
function configOf(reply: Reply): string {
  if (reply.outcome !== 'accepted') return '';
  const { config, epoch } = reply.value;
  return whyStray(config, epoch) === '' ? config : '';
}

/** Members that nobody has asked, and members that are elsewhere by now. */
async function otherPorts(
  { openMember }: RegistryNodes,
  configuration: Configuration | null,
  asked: ReadonlyMap<string, { port: NodePort; reply: Reply }>,
): Promise<NodePort[]> {
  if (openMember === undefined || configuration === null) return [];
  const elsewhere = configuration.members.filter(({ id, url, memory }) => {
    const one = asked.get(id);
    if (one === undefined) return true;
    const { port, reply } = one;
    return port.url !== url && !(reply.outcome === 'accepted' && reply.incarnation === memory);
  });
  // A member that cannot be opened has not answered. The others decide.
  const opened = await Promise.allSettled(elsewhere.map((member) => openMember(member)));
  return opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

type Accepted = Extract<Reply, { outcome: 'accepted' }>;

/** Why what a node said does not count. '' when it does. */
function whySilent(id: string, reply: Reply, configuration: Configuration | null): string {
  if (reply.outcome !== 'accepted') return describeReply(reply);
  const { config, epoch } = reply.value;
  const stray = whyStray(config, epoch);
  if (stray !== '' || configuration === null) return stray;
  const version = versionText(configuration.version);
  if (config.split(' ', 1)[0] !== version) return `it has not noted configuration ${version} yet`;
  if (memoryNamed(configuration, id) !== reply.incarnation) return `another memory counts as ${id}`;
  return '';
}

/** A memory that the bootstrap made has forgotten nothing (lua/note_lanes.lua). */
function whatItHas(port: NodePort, { incarnation, value: { mark, entries } }: Accepted): NodeLanes {
  const remembers = mark === incarnation || incarnation.includes('.');
  return { port, incarnation, remembers, lanes: entriesOf(entries) };
}

/** Throws NO_QUORUM or LANES_FORGOTTEN: a change that counted may be on the other members alone. */
export function requireQuorum(registry: Registry): Registry {
  const { answers, silent, members } = registry;
  const quorum = quorumOf(members);
  const forgot = [...answers].flatMap(([id, { remembers }]) => (remembers ? [] : [id]));
  if (answers.size - forgot.length >= quorum) return registry;
  if (answers.size >= quorum)
    throw new SeqError({
      code: 'LANES_FORGOTTEN',
      exit: EXIT.precondition,
      message:
        `${answers.size - forgot.length} of ${members} nodes remember the list of lanes, ${quorum} are needed; ` +
        `${forgot.join(', ')} lost their memory since` +
        (silent.length === 0 ? '' : `, and ${saidBy(silent)}`),
      why: 'lanes that were added, and names that were used, may have been known to the lost memories alone',
      changed: 'nothing',
      next: [
        ...(silent.length === 0 ? [] : ['bring back the silent nodes: they may remember it']),
        'seq explain LANES_FORGOTTEN',
      ],
    });
  throw new SeqError({
    code: 'NO_QUORUM',
    exit: EXIT.noQuorum,
    message: `${answers.size} of ${members} nodes showed their lanes, ${quorum} are needed: ${saidBy(silent)}`,
    why: 'a lane that was added may be known to the other nodes alone',
    changed: 'nothing',
    next: ['seq status'],
    retryable: true,
  });
}

function saidBy(silent: Registry['silent']): string {
  return silent.map(({ node, why }) => `${node}: ${why}`).join('; ');
}

export async function readRegistry(at: RegistryNodes): Promise<Registry> {
  return requireQuorum(await surveyRegistry(at));
}

/** Stores the entries on one node, in pieces. Why it did not store all of them; '' when it did. */
export async function noteOn(
  port: NodePort,
  entries: readonly LaneEntry[],
  { version, fills, limitMs }: { version: string; fills?: string; limitMs: number },
): Promise<string> {
  const texts = entries.map((entry) => ({ name: entry.name, text: entryText(entry) }));
  const limit = Math.max(limitMs, LARGE_LIMIT_MS);
  for (let at = 0; at < texts.length || (at === 0 && fills !== undefined); at += BATCH) {
    const fill: { fills?: LanesFill } =
      fills === undefined ? {} : { fills: { incarnation: fills, marks: at + BATCH >= texts.length } };
    const call = { script: 'note_lanes', version, entries: texts.slice(at, at + BATCH), ...fill } as const;
    const reply: NodeReply<unknown> = await port.call(call, limit);
    if (reply.outcome !== 'accepted') return describeReply(reply);
  }
  return '';
}

/** Which nodes have stored all of the entries, and why the others have not. */
export interface Noted {
  stored: string[];
  failed: { node: string; why: string }[];
}

async function noteLanes(
  { answers, silent, version }: Registry,
  entries: readonly LaneEntry[],
  limitMs: number,
): Promise<Noted> {
  const named = await Promise.all(
    [...answers].map(async ([node, { port, remembers }]) => {
      const why = remembers ? await noteOn(port, entries, { version, limitMs }) : 'it does not remember the list yet';
      return { node, why };
    }),
  );
  return {
    stored: named.filter(({ why }) => why === '').map(({ node }) => node),
    failed: [...named.filter(({ why }) => why !== ''), ...silent],
  };
}

/**
 * Stores the entries on the members. Throws PARTIAL or OUTCOME_UNKNOWN when fewer than q have stored them. A member
 * refuses when the members, or the memory of one of them, changed since the registry was read: then it is read again.
 */
export async function changeLanes(
  at: RegistryNodes,
  given: Registry,
  entries: readonly LaneEntry[],
  next: string[],
): Promise<Noted> {
  let registry = given;
  let noted = await noteLanes(registry, entries, at.limitMs);
  for (let attempt = 1; attempt < ATTEMPTS && !isEnough(noted, registry); attempt += 1) {
    registry = await surveyRegistry(at);
    noted = await noteLanes(registry, entries, at.limitMs);
  }
  if (isEnough(noted, registry)) return noted;
  const some = noted.stored.length > 0;
  throw new SeqError({
    code: some ? 'PARTIAL' : 'OUTCOME_UNKNOWN',
    exit: some ? EXIT.partial : EXIT.outcomeUnknown,
    message:
      `the lanes are stored on ${noted.stored.length} of ${registry.members} nodes, ${quorumOf(registry.members)} ` +
      `are needed: ${saidBy(noted.failed)}`,
    why: 'a change of lanes counts when a quorum has it; the same command goes on from here',
    changed: some ? 'some' : 'unknown',
    changedNodes: noted.stored,
    next,
    retryable: true,
  });
}

function isEnough({ stored }: Noted, { members }: Registry): boolean {
  return stored.length >= quorumOf(members);
}
