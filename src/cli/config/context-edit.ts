// How `seq context set` applies its flags to an existing context: given values replace, all others stay. Pure.
import type { ContextEntry, NodeEntry } from './config-types.js';
import { usageError } from '../support/failure.js';
import { asLane } from './settings.js';
import { parseNodeFlag } from '../support/node-url.js';

type Flags = Record<string, unknown>;

function text(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function contextFromFlags(name: string, before: ContextEntry | undefined, flags: Flags): ContextEntry {
  const given = flags['node'] as string[] | undefined;
  if (!before && !given)
    throw usageError(`context '${name}' is new: it needs its nodes`, [
      `seq context set ${name} --node URL --node URL --node URL`,
    ]);
  const entry: ContextEntry = { ...(before ?? {}), nodes: given ? given.map(nodeEntry) : (before?.nodes ?? []) };
  const lane = flags['lane'] as string | undefined;
  if (lane !== undefined) entry.lane = asLane(lane, '--lane');
  for (const key of ['cluster', 'username'] as const) {
    const value = text(flags, key);
    if (value !== undefined) entry[key] = value;
  }
  const secret = {
    passwordFile: text(flags, 'password-file'),
    passwordCommand: text(flags, 'password-command'),
    passwordEnv: text(flags, 'password-env'),
  };
  for (const [key, value] of Object.entries(secret)) {
    if (value === undefined) continue;
    delete entry.passwordFile;
    delete entry.passwordCommand;
    delete entry.passwordEnv;
    entry[key as keyof typeof secret] = value;
  }
  const tls = {
    ca: text(flags, 'tls-ca'),
    cert: text(flags, 'tls-cert'),
    key: text(flags, 'tls-key'),
    serverName: text(flags, 'tls-server-name'),
  };
  const changed = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
  if (Object.keys(changed).length > 0) entry.tls = { ...entry.tls, ...changed };
  const sequencers = flags['sequencer'] as string[] | undefined;
  if (sequencers) entry.sequencers = sequencers;
  for (const pair of (flags['setting'] as string[] | undefined) ?? []) {
    const at = pair.indexOf('=');
    if (at < 1) throw usageError(`--setting ${pair}: NAME=VALUE is wanted`, ['--setting nodeTimeout=200ms']);
    entry.settings = { ...entry.settings, [pair.slice(0, at)]: pair.slice(at + 1) };
  }
  return entry;
}

function nodeEntry(flag: string): NodeEntry {
  const { id, url, username } = parseNodeFlag(flag);
  return { ...(id === undefined ? {} : { id }), url, ...(username === undefined ? {} : { username }) };
}
