// What `seq doctor` asks one server: INFO, the important settings, its clock, round trips, and every right by ACL
// DRYRUN (which runs nothing). A question that the server refuses is a finding too.
import type { NodeCheckup } from '../ports.js';
import { isErrorReply, send } from './connection.js';
import type { NodeKeys } from './keys.js';
import { list, parseInfo, text } from './replies.js';
import { aclRule, rightsOf, transactionRights } from './rights.js';
import type { Wire } from './wire/wire.js';

const SETTINGS = [
  'appendonly',
  'appendfsync',
  'save',
  'notify-keyspace-events',
  'min-replicas-to-write',
  'maxmemory-policy',
  'dir',
];
const PINGS = 20;

export async function checkUp(client: Wire, keys: NodeKeys, channel: string, db: number): Promise<NodeCheckup> {
  const roundTripsMs: number[] = [];
  for (let i = 0; i < PINGS; i++) {
    const at = performance.now();
    await send(client, 'ping', []);
    roundTripsMs.push(performance.now() - at);
  }
  const before = Date.now();
  const time = await orNull(send(client, 'time', []));
  const after = Date.now();
  const clockMs =
    time === null
      ? 0
      : Math.round(Number(text(list(time)[0])) * 1000 + Number(text(list(time)[1])) / 1000 - (before + after) / 2);
  const user = await orNull(send(client, 'acl', ['WHOAMI']));
  const name = user === null ? 'default' : text(user);
  return {
    info: parseInfo(text(await send(client, 'info', []))),
    config: await settings(client),
    user: name,
    denied: await denied(client, user === null ? null : name, rightsOf(keys, channel)),
    scriptsOnly: (await denied(client, user === null ? null : name, transactionRights(keys))) ?? [],
    roundTripsMs,
    clockMs,
    aclRule: aclRule(name === 'default' ? 'seq' : name, keys, channel, db),
  };
}

async function settings(client: Wire): Promise<Record<string, string> | null> {
  const found: Record<string, string> = {};
  for (const setting of SETTINGS) {
    const reply = await orNull(send(client, 'config', ['GET', setting]));
    if (reply === null) return null;
    const [, value] = list(reply);
    if (value !== undefined) found[setting] = text(value);
  }
  return found;
}

/** The rights that user `name` lacks. Null when the server does not tell. */
async function denied(
  client: Wire,
  name: string | null,
  rights: ReturnType<typeof rightsOf>,
): Promise<string[] | null> {
  if (name === null) return null;
  const found: string[] = [];
  for (const [command, ...args] of rights) {
    let reply: string;
    try {
      reply = text(await send(client, 'acl', ['DRYRUN', name, ...command.split('|'), ...args]));
    } catch (error) {
      if (!isErrorReply(error)) throw error;
      // The command was renamed. Any other error means that DRYRUN itself is unknown (before Redis 7.0) or not allowed.
      if (/Command '.*' not found/i.test(error.message))
        found.push(`${command}: the server does not know it (rename-command?)`);
      else return null;
      continue;
    }
    if (reply !== 'OK') found.push(`${command}: ${reply}`);
  }
  return found;
}

async function orNull(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    if (isErrorReply(error)) return null;
    throw error;
  }
}
