// Who the nodes are, as a quorum of them knows it (docs/PROTOCOL.md section 8, I13). A configuration names the members
// by id, the memory of each that counts, and the address of each. It also has the settings that decide what a block
// means. It is one line of text, which every node stores in its record and every claim carries:
// `17.0 dedup-ms=86400000 dedup-items=1000000 max-block=1048576 | r1=ab12@redis://10.0.0.1:6379 r3=-@redis://10.0.0.3`
// The version (epoch and turn of the term that made it) comes first, then the settings, then the members. A member is
// `<id>=<memory>@<address>`. A node that was replaced, or that joined, has `#<version>` behind its address.
import { quorumOf } from './quorum.js';
import { MAX_NUMBER, type Epoch } from './types.js';

export interface Version {
  /** The epoch of the term that made it; 0: a bootstrap made it. */
  epoch: Epoch;
  /** The number of this configuration among those of that term. */
  turn: number;
}

export interface Member {
  id: string;
  /** The incarnation that counts; '': none does yet. */
  memory: string;
  /** The address, without secrets. It is only a hint, unless a leader gave it to the node. */
  url: string;
  /** The version that gave the node this address: it was replaced, or joined. Absent: it is a node from the start. */
  since?: string;
}

/** Settings that must be the same on every sequencer of the cluster. */
export interface AgreedSettings {
  /** How long, and how many, keys are remembered to find duplicates. */
  dedupMs: number;
  dedupItems: number;
  maxBlockBytes: number;
  /** Who makes the blocks of the lane, and the format of their data (producers.ts). '': nobody has said yet. */
  producer: string;
  /** Settings that this version does not know. They are kept, so that an older version of the program drops none. */
  other: Readonly<Record<string, string>>;
}

export interface Configuration {
  version: Version;
  settings: AgreedSettings;
  /** Sorted by id; each id occurs once. */
  members: readonly Member[];
}

export const DEFAULT_AGREED: AgreedSettings = {
  dedupMs: 86_400_000,
  dedupItems: 1_000_000,
  maxBlockBytes: 1_048_576,
  producer: '',
  other: {},
};
/** The most members, because a proof keeps one bit for each node. */
const MAX_MEMBERS = 15;
const MAX_CONFIGURATION_BYTES = 16_384;
/** A term that has made this many is renewed before it makes another (VERSION has six digits for them). */
export const MAX_TURN = 999_999;

/** The settings that are numbers, and what each may be. */
const COUNTS = [
  { name: 'dedup-ms', least: 0, most: MAX_NUMBER },
  { name: 'dedup-items', least: 0, most: MAX_NUMBER },
  { name: 'max-block', least: 1024, most: 16 * 1024 * 1024 },
];
const COUNT_NAMES = COUNTS.map(({ name }) => name);
const PRODUCER = 'producer';
const VERSION = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d{0,5})$/;
const SETTING = /^([a-z][a-z0-9-]{0,63})=([^\s|]{1,256})$/;
const MEMBER = /^([^\s=@|]{1,255})=([^\s=@|]{1,512})@([^\s|#]{1,512})(?:#(\d{1,16}\.\d{1,6}))?$/;
const WHOLE = /^(0|[1-9]\d{0,15})$/;

/** null: the text is empty or unreadable. An unreadable text on an admitted node is damage. */
export function parseConfiguration(text: string): Configuration | null {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const read = text === '' || text.length > MAX_CONFIGURATION_BYTES ? null : readText(text);
  if (parsed.size >= PARSED_KEPT) parsed.clear();
  parsed.set(text, read);
  if (read !== null) texts.set(read, text);
  return read;
}

/** A cache: every probe parses the same text again. Nobody changes a configuration that is returned. */
const parsed = new Map<string, Configuration | null>();
const PARSED_KEPT = 256;
const texts = new WeakMap<Configuration, string>();

function readText(text: string): Configuration | null {
  const words = text.split(' ');
  const bar = words.indexOf('|');
  const [, epoch, turn] = VERSION.exec(words[0]!) ?? [];
  if (epoch === undefined || bar < 1 || Number(epoch) > MAX_NUMBER) return null;
  const settings = readSettings(words.slice(1, bar));
  const members = words.slice(bar + 1).map((word) => {
    const [, id, memory, url, since] = MEMBER.exec(word) ?? [];
    if (id === undefined) return null;
    const member: Member = { id, memory: memory === '-' ? '' : memory!, url: url! };
    return since === undefined ? member : { ...member, since };
  });
  if (settings === null || members.length === 0 || members.length > MAX_MEMBERS) return null;
  const good = members.filter((member) => member !== null);
  if (good.length < members.length) return null;
  if (good.some((member, at) => at > 0 && !(good[at - 1]!.id < member.id))) return null;
  return { version: { epoch: Number(epoch), turn: Number(turn) }, settings, members: good };
}

function readSettings(words: readonly string[]): AgreedSettings | null {
  const values = new Map<string, string>();
  for (const word of words) {
    const [, name, value] = SETTING.exec(word) ?? [];
    if (name === undefined || values.has(name)) return null;
    values.set(name, value!);
  }
  const [dedupMs, dedupItems, maxBlockBytes] = COUNTS.map(({ name, least, most }) => {
    const value = values.get(name) ?? '';
    return WHOLE.test(value) && Number(value) >= least && Number(value) <= most ? Number(value) : null;
  });
  if (dedupMs == null || dedupItems == null || maxBlockBytes == null) return null;
  const other = Object.fromEntries([...values].filter(([name]) => ![...COUNT_NAMES, PRODUCER].includes(name)));
  return { dedupMs, dedupItems, maxBlockBytes, producer: values.get(PRODUCER) ?? '', other };
}

export function configurationText(configuration: Configuration): string {
  const known = texts.get(configuration);
  if (known !== undefined) return known;
  const { version, settings, members } = configuration;
  const words = [
    versionText(version),
    `dedup-ms=${settings.dedupMs}`,
    `dedup-items=${settings.dedupItems}`,
    `max-block=${settings.maxBlockBytes}`,
    ...(settings.producer === '' ? [] : [`${PRODUCER}=${settings.producer}`]),
    ...Object.entries(settings.other).map(([name, value]) => `${name}=${value}`),
    '|',
    ...members.map(
      ({ id, memory, url, since }) =>
        `${id}=${memory === '' ? '-' : memory}@${url}${since === undefined ? '' : `#${since}`}`,
    ),
  ];
  const text = words.join(' ');
  texts.set(configuration, text);
  return text;
}

export function versionText({ epoch, turn }: Version): string {
  return `${epoch}.${turn}`;
}

/** null: the text is not a version. */
export function parseVersion(text: string): Version | null {
  const [, epoch, turn] = VERSION.exec(text) ?? [];
  return epoch === undefined ? null : { epoch: Number(epoch), turn: Number(turn) };
}

export const NO_TERM_MADE_IT = 'no term has made such a configuration';

/**
 * Why no term can have made the configuration of a node that counts; '' when one can have. It reaches such a node only
 * by a claim or an admission of the term that made it, or of a later term. So its epoch is at most the node's, and
 * every part of it can be read.
 */
export function whyStray(config: string, epoch: Epoch): string {
  if (config === '') return '';
  const [words = ''] = config.split(' ', 1);
  const version = parseVersion(words);
  if (version !== null && version.epoch <= epoch)
    return parseConfiguration(config) === null ? `its configuration ${words} cannot be read: ${NO_TERM_MADE_IT}` : '';
  return `its configuration is ${words.slice(0, 40)}, and its epoch is ${epoch}: ${NO_TERM_MADE_IT}`;
}

export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.turn - b.turn;
}

/**
 * The configuration with the highest version. Of those with one version, it is the one that more of the texts give, or
 * else the first. Unreadable texts are skipped.
 */
export function newest(...among: readonly (string | Configuration | null)[]): Configuration | null {
  let best: Configuration | null = null;
  let rivals = false;
  const read = among.map((one) => (typeof one === 'string' ? parseConfiguration(one) : one));
  for (const one of read) {
    if (one === null) continue;
    const order = best === null ? 1 : compareVersions(one.version, best.version);
    if (order === 0) rivals ||= contradicts(configurationText(one), configurationText(best!));
    if (order > 0) [best, rivals] = [one, false];
  }
  return rivals ? mostGiven(read, best!) : best;
}

function mostGiven(read: readonly (Configuration | null)[], first: Configuration): Configuration {
  const rivals = read.flatMap((one) =>
    one !== null && compareVersions(one.version, first.version) === 0 ? [one] : [],
  );
  const given = (one: Configuration): number =>
    rivals.filter((other) => !contradicts(configurationText(one), configurationText(other))).length;
  return rivals.reduce((most, one) => (given(one) > given(most) ? one : most));
}

/**
 * Whether two texts have one version and differ by more than addresses. No two terms make such configurations: one was
 * written by hand, or operators have said of two lists that each is complete.
 */
export function contradicts(one: string, other: string): boolean {
  if (one === other) return false;
  const [mine, theirs] = [parseConfiguration(one), parseConfiguration(other)];
  if (mine === null || theirs === null || compareVersions(mine.version, theirs.version) !== 0) return false;
  return withoutAddresses(one) !== withoutAddresses(other);
}

function withoutAddresses(text: string): string {
  return text.replace(/@\S+/g, '');
}

/** The first configuration of a new cluster or of a new generation. A recovery passes its own `epoch`. */
export function firstConfiguration(
  members: readonly Member[],
  settings: AgreedSettings = DEFAULT_AGREED,
  epoch: Epoch = 0,
): Configuration {
  return { version: { epoch, turn: 0 }, settings, members: sorted(members.map(writable)) };
}

/** Blanks separate the members in the text, and the path of a unix socket may contain blanks. They are encoded. */
function writable(member: Member): Member {
  return { ...member, url: member.url.replace(/[\s|#]/g, encodeURIComponent) };
}

/**
 * The configuration in which another memory counts for this id; '' means none yet. `url` gives the node another
 * address.
 */
export function withMemory(
  configuration: Configuration,
  id: string,
  memory: string,
  by: Epoch | Version,
  url?: string,
): Configuration {
  const version = typeof by === 'number' ? nextVersion(configuration.version, by) : by;
  const moved = url === undefined ? {} : { url, since: versionText(version) };
  return {
    version,
    settings: configuration.settings,
    members: configuration.members.map((member) =>
      member.id === id ? writable({ ...member, memory, ...moved }) : member,
    ),
  };
}

export function withMember(configuration: Configuration, member: Member, by: Epoch | Version): Configuration {
  const version = typeof by === 'number' ? nextVersion(configuration.version, by) : by;
  // A node of this id may have been a member before, on another server, and lists may still name that server.
  const added = writable({ ...member, since: versionText(version) });
  return {
    version,
    settings: configuration.settings,
    members: sorted([...configuration.members.filter(({ id }) => id !== member.id), added]),
  };
}

export function withoutMember(configuration: Configuration, id: string, by: Epoch | Version): Configuration {
  return {
    version: typeof by === 'number' ? nextVersion(configuration.version, by) : by,
    settings: configuration.settings,
    members: configuration.members.filter((member) => member.id !== id),
  };
}

/**
 * One change of the members or of the agreed settings. `margin`: so many nodes more than a quorum must answer
 * afterwards, because that is what the operator confirmed.
 */
export type MembersChange =
  | { kind: 'add'; id: string; url: string; margin: number }
  | { kind: 'remove'; id: string; margin: number }
  | { kind: 'set'; settings: Readonly<Partial<Omit<AgreedSettings, 'other'>>> };

/** The configuration after this change. `memory`: what counts for an added member. */
export function withChange(
  configuration: Configuration,
  change: MembersChange,
  memory: string,
  by: Version,
): Configuration {
  if (change.kind === 'remove') return withoutMember(configuration, change.id, by);
  if (change.kind === 'add') return withMember(configuration, { id: change.id, memory, url: change.url }, by);
  return { ...configuration, version: by, settings: { ...configuration.settings, ...change.settings } };
}

function nextVersion(version: Version, epoch: Epoch): Version {
  return version.epoch >= epoch ? { epoch: version.epoch, turn: version.turn + 1 } : { epoch, turn: 0 };
}

function sorted(members: readonly Member[]): readonly Member[] {
  return [...members].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

export function quorumFor(configuration: Configuration): number {
  return quorumOf(configuration.members.length);
}

/** The memory of this node that counts; '' when none does, or it is no member. */
export function memoryNamed(configuration: Configuration, id: string): string {
  return configuration.members.find((member) => member.id === id)?.memory ?? '';
}

export function memberOf(configuration: Configuration | null, id: string): Member | undefined {
  return configuration?.members.find((member) => member.id === id);
}

/** Nodes that a person lists at an old address, although the records of the nodes say that they were moved. */
export function displaced(
  nodes: readonly { id: string; url: string; view: { config: string } | null }[],
): { id: string; url: string; to: string }[] {
  const configuration = newest(...nodes.map(({ view }) => view?.config ?? ''));
  return nodes.flatMap(({ id, url, view }) => {
    const member = configuration === null ? undefined : memberOf(configuration, id);
    if (member?.since === undefined || view === null || url === member.url) return [];
    // The URL may be another name of the same server. Then that server has noted the move itself.
    const own = parseConfiguration(view.config);
    const known = own === null ? undefined : memberOf(own, id)?.since;
    return known === member.since ? [] : [{ id, url, to: member.url }];
  });
}

/**
 * Whether a leader may change from one configuration to the other. Only one change is allowed: one member more, one
 * member less, or one memory changed. With more changes, a majority of one and a majority of the other need not share a
 * node.
 */
export function isNextTo(a: Configuration, b: Configuration): boolean {
  const lost = a.members.filter(({ id }) => memberOf(b, id) === undefined).length;
  const won = b.members.filter(({ id }) => memberOf(a, id) === undefined).length;
  const changed = a.members.filter((member) => {
    const there = memberOf(b, member.id);
    return there !== undefined && there.memory !== member.memory;
  }).length;
  return lost + won + changed <= 1;
}
