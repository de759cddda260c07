// Which cluster is meant? Turns flags, SEQ_*, context and config file into the settings of one cluster. Opens nothing.
// Secrets stay references (address.ts reads them).
import { DEFAULT_TIMING } from '../../core/config.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { contextNotFound } from '../config/config-errors.js';
import type { ConfigFile, ContextEntry, SecretRefs, TlsEntry } from '../config/config-types.js';
import { configPath, readConfig } from '../config/file.js';
import { asDuration, asLane, asList, setting, type Sources } from '../config/settings.js';
import { checkUrl, parseNodeFlag } from '../support/node-url.js';
import { noCluster, refuseDuplicates } from './errors.js';

/** One node as configured; secrets are still references. */
export interface NodeSettings extends SecretRefs {
  /** null: still to be discovered. */
  id: string | null;
  /** Normalised, without secrets. */
  url: string;
  username?: string;
  tls?: TlsEntry;
  sentinel?: SecretRefs & { name: string; nodes: string[]; username?: string };
}

export interface ClusterSettings {
  context: string | null;
  nodes: NodeSettings[];
  /**
   * Credentials for members of the cluster that are not listed: user, password and TLS settings that belong to no
   * particular node.
   */
  unlisted: Omit<NodeSettings, 'id' | 'url'>;
  nodesFrom: string;
  on: string[] | null;
  lane: string;
  /** '' when it is still to be discovered. */
  cluster: string;
  nodeTimeoutMs: number;
  sequencers: string[];
}

/** What a command knows about its environment before it opens anything. */
export interface Surroundings {
  sources: Sources;
  /** Throws 78 when no cluster is named or when its settings are wrong. */
  clusterSettings(): ClusterSettings;
}

/**
 * Reads the config file and picks the context. `tolerant`: a broken file counts as no file (for commands that repair
 * it).
 */
export async function surroundings(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv,
  tolerant = false,
): Promise<Surroundings> {
  const path = configPath(env);
  let config: ConfigFile | null = null;
  try {
    config = await readConfig(path, Boolean(env['SEQ_CONFIG']));
  } catch (error) {
    if (!tolerant) throw error;
  }
  const sources: Sources = {
    flags,
    env,
    config,
    configPath: path,
    context: pickContext(flags, env, config, path, tolerant),
  };
  return { sources, clusterSettings: () => clusterSettings(sources) };
}

function pickContext(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv,
  config: ConfigFile | null,
  path: string,
  tolerant: boolean,
): Sources['context'] {
  const byFlag = flags['context'] as string | undefined;
  // Nodes named by hand are a different cluster from the current context's. The context's secrets and lane must not be
  // used for them.
  if (byFlag === undefined && (Array.isArray(flags['node']) || (env['SEQ_NODE'] ?? '') !== '')) return null;
  const name = byFlag ?? (env['SEQ_CONTEXT'] || config?.current);
  if (name === undefined) return null;
  const entry = config?.contexts[name];
  if (entry) return { name, entry };
  if (tolerant) return null;
  throw contextNotFound(name, config, path);
}

function clusterSettings(sources: Sources): ClusterSettings {
  const byFlag = sources.flags['node'] as string[] | undefined;
  const byEnv = (sources.env['SEQ_NODE'] ?? '').split(/[\s,]+(?=[^\s,]*:\/\/|\S+=)|\s+/).filter(Boolean);
  const entry = sources.context?.entry;
  const [nodes, nodesFrom] =
    byFlag && byFlag.length > 0
      ? [nodesByHand(byFlag, sources), '--node']
      : sources.flags['context'] === undefined && byEnv.length > 0
        ? [nodesByHand(byEnv, sources), 'SEQ_NODE']
        : entry
          ? [nodesOfContext(entry, sources.env), `context ${sources.context?.name}`]
          : [[], ''];
  if (nodes.length === 0) throw noCluster(Object.keys(sources.config?.contexts ?? {}));
  refuseDuplicates(nodes);
  return {
    context: sources.context?.name ?? null,
    nodes,
    unlisted: unlistedOf(nodes, entry !== undefined && nodesFrom.startsWith('context') ? entry : undefined, sources),
    nodesFrom,
    on: setting<string[] | null>(sources, 'on', asList, null).value,
    lane: asLane(setting(sources, 'lane', asLane, entry?.lane ?? '').value, '--lane'),
    cluster: entry?.cluster ?? '',
    nodeTimeoutMs: nodeTimeout(sources),
    sequencers: entry?.sequencers ?? [],
  };
}

function nodesByHand(texts: string[], sources: Sources): NodeSettings[] {
  const common = credentialsByHand(sources);
  return texts.map((text) => {
    const { id, url, username } = parseNodeFlag(text);
    return { id: id ?? null, url, ...common, ...(username ? { username } : {}) };
  });
}

function credentialsByHand({ env, context }: Sources): ClusterSettings['unlisted'] {
  const entry = context?.entry;
  const username = env['SEQ_USERNAME'] || entry?.username;
  const tls = tlsOfEnv(env) ?? entry?.tls;
  return {
    ...secretsOf({ ...secretsOf(entry ?? {}), ...secretsOfEnv(env) }),
    ...(username ? { username } : {}),
    ...(tls ? { tls } : {}),
  };
}

/**
 * Treated as a listed node without credentials of its own. If all listed nodes have the same user, that user is taken
 * too.
 */
function unlistedOf(
  listed: readonly NodeSettings[],
  entry: ContextEntry | undefined,
  sources: Sources,
): ClusterSettings['unlisted'] {
  const common = entry === undefined ? credentialsByHand(sources) : credentialsOf(entry, {}, sources.env);
  const [first, ...others] = listed.map(({ username }) => username);
  return first !== undefined && others.every((one) => one === first) ? { ...common, username: first } : common;
}

function nodesOfContext(entry: ContextEntry, env: NodeJS.ProcessEnv): NodeSettings[] {
  return entry.nodes.map((each) => {
    const { url, username } = checkUrl(each.url);
    const user = each.username ?? username;
    const own = { ...each, ...(user === undefined ? {} : { username: user }) };
    const node: NodeSettings = { id: each.id ?? null, url, ...credentialsOf(entry, own, env) };
    if (each.sentinel) node.sentinel = each.sentinel;
    return node;
  });
}

/** The node's own credentials come first, then the environment's, then the context's. */
function credentialsOf(
  entry: ContextEntry,
  own: SecretRefs & Pick<NodeSettings, 'username' | 'tls'>,
  env: NodeJS.ProcessEnv,
): ClusterSettings['unlisted'] {
  const secrets = [secretsOf(own), secretsOfEnv(env), secretsOf(entry)].find((refs) => Object.keys(refs).length > 0);
  const username = own.username ?? (env['SEQ_USERNAME'] || entry.username);
  const tls = own.tls ?? tlsOfEnv(env) ?? entry.tls;
  return { ...secrets, ...(username ? { username } : {}), ...(tls ? { tls } : {}) };
}

function secretsOf(from: SecretRefs): SecretRefs {
  const { passwordFile, passwordCommand, passwordEnv } = from;
  return passwordFile !== undefined
    ? { passwordFile }
    : passwordCommand !== undefined
      ? { passwordCommand }
      : passwordEnv !== undefined
        ? { passwordEnv }
        : {};
}

/**
 * SEQ_PASSWORD_FILE, SEQ_PASSWORD_COMMAND, SEQ_PASSWORD: the password of every node that has no password of its own.
 */
function secretsOfEnv(env: NodeJS.ProcessEnv): SecretRefs {
  if (env['SEQ_PASSWORD_FILE']) return { passwordFile: env['SEQ_PASSWORD_FILE'] };
  if (env['SEQ_PASSWORD_COMMAND']) return { passwordCommand: env['SEQ_PASSWORD_COMMAND'] };
  return env['SEQ_PASSWORD'] ? { passwordEnv: 'SEQ_PASSWORD' } : {};
}

function tlsOfEnv(env: NodeJS.ProcessEnv): TlsEntry | undefined {
  const tls: TlsEntry = {};
  if (env['SEQ_TLS_CA']) tls.ca = env['SEQ_TLS_CA'];
  if (env['SEQ_TLS_CERT']) tls.cert = env['SEQ_TLS_CERT'];
  if (env['SEQ_TLS_KEY']) tls.key = env['SEQ_TLS_KEY'];
  if (env['SEQ_TLS_SERVER_NAME']) tls.serverName = env['SEQ_TLS_SERVER_NAME'];
  return Object.keys(tls).length > 0 ? tls : undefined;
}

function nodeTimeout(sources: Sources): number {
  const { value, from } = setting(sources, 'node-timeout', asDuration, DEFAULT_TIMING.nodeTimeoutMs);
  if (value >= 1) return value;
  throw new SeqError({
    code: 'BAD_CONFIG',
    exit: EXIT.config,
    message: `${from}: a node timeout of 0 leaves no time to answer`,
    why: 'every call would be unknown',
    changed: 'nothing',
    next: ['give it at least 1ms (100ms is the default)'],
  });
}
