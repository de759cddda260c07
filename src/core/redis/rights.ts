// The rights that a Redis user needs for seq (docs/PROTOCOL.md section 8): commands, keys, channels, and nothing more.
// `seq doctor --acl` prints the rule. ACL DRYRUN tries every command where the server has it. A test compares this list
// with the scripts.
import type { NodeKeys } from './keys.js';

/** Commands with arguments as seq sends them, from scripts or directly. */
export function rightsOf(keys: NodeKeys, channel: string): [command: string, ...args: string[]][] {
  const { lock, epoch, stream, admission, orphans, hold, handover, sequencers, audit } = keys;
  const sequencer = `${keys.sequencer}x`;
  return [
    ['ping'],
    ['select', '0'],
    ['acl|whoami'],
    ['acl|dryrun', 'default', 'ping'],
    ['info', 'server'],
    ['time'],
    ['evalsha', '0'.repeat(40), '1', lock],
    ['script|load', 'return 1'],
    ['get', lock],
    ['mget', lock, epoch],
    ['set', epoch, '1'],
    ['del', lock],
    ['exists', stream],
    ['rename', stream, orphans],
    ['type', stream],
    ['pexpire', lock, '1'],
    ['pttl', lock],
    ['hget', admission, 'run'],
    ['hmget', admission, 'run'],
    ['hgetall', hold],
    ['hset', admission, 'a', 'b'],
    ['hdel', admission, 'a'],
    ['hlen', handover],
    ['xadd', stream, '*', 'a', 'b'],
    ['xdel', stream, '1-1'],
    ['xtrim', stream, 'MINID', '1'],
    ['xlen', stream],
    ['xrange', stream, '-', '+'],
    ['xrevrange', stream, '+', '-'],
    ['xread', 'COUNT', '1', 'STREAMS', stream, '0-0'],
    ['zadd', sequencers, '1', 'a'],
    ['zcard', sequencers],
    ['zrange', sequencers, '0', '-1'],
    ['zremrangebyrank', sequencers, '0', '0'],
    ['zremrangebyscore', sequencers, '0', '0'],
    ['hset', sequencer, 'a', 'b'],
    ['xadd', audit, '*', 'a', 'b'],
    ['subscribe', channel],
    ['publish', channel, 'x'],
  ];
}

/**
 * The rights of the fast append (fast-append/). Without them the leader runs a script for each block. Everything works,
 * at about twice the processor time of the node.
 */
export function transactionRights({ lock, admission }: NodeKeys): [command: string, ...args: string[]][] {
  return [['watch', lock], ['hvals', admission], ['multi'], ['exec'], ['discard']];
}

/** Everything that a user must be allowed, in the words of `ACL SETUSER`. */
export function allRights(keys: NodeKeys, channel: string, db: number): string[] {
  const commands = [...rightsOf(keys, channel), ...transactionRights(keys)].map(([command]) => `+${command}`);
  return [keyPattern(keys), ...channelsOf(channel, db), ...new Set(commands)];
}

export function keyPattern({ lock }: NodeKeys): string {
  return `~${lock.slice(0, -'leader:lock'.length)}*`;
}

/** Our own channel, and those on which the server says that a lock has ended. */
export function channelsOf(channel: string, db: number): string[] {
  return [`&${channel}`, `&__keyevent@${db}__:expired`, `&__keyevent@${db}__:del`];
}

/** One line for `redis-cli`. For an ACL file, leave out `ACL SETUSER`. The operator inserts the password. */
export function aclRule(user: string, keys: NodeKeys, channel: string, db: number): string {
  const [pattern, ...others] = allRights(keys, channel, db);
  return ['ACL SETUSER', user, 'on', '>PASSWORD', 'resetkeys', 'resetchannels', '-@all', pattern, ...others].join(' ');
}
