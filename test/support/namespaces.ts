// Containers and hosts on one machine. A pid namespace has its own processes, like a container. A network namespace has
// its own addresses, like a host. Both need root. Where the machine does not allow them, the tests that need them are
// skipped, and vitest counts them.
import { spawnSync } from 'node:child_process';

/** The command in front of a program that runs in its own pid namespace. It ends with its parent. */
export const CONTAINER = ['/usr/bin/unshare', '-p', '-f', '--kill-child', '--mount-proc'] as const;

const [program, ...flags] = CONTAINER;
export const mayContain = spawnSync(program, [...flags, 'true']).status === 0;

/**
 * Two hosts: network namespaces on one bridge, with the addresses 2 and 3. This machine has address 1 on the bridge.
 */
export class TwoHosts {
  private readonly tag = String(process.pid % 100_000);
  private readonly net = `10.${200 + (process.pid % 50)}.${process.pid % 250}`;
  private readonly bridge = `sq${this.tag}`;
  readonly names = [`seq-a-${this.tag}`, `seq-b-${this.tag}`] as const;
  readonly here = `${this.net}.1`;

  constructor() {
    ip('link', 'add', this.bridge, 'type', 'bridge');
    ip('addr', 'add', `${this.here}/24`, 'dev', this.bridge);
    ip('link', 'set', this.bridge, 'up');
    this.names.forEach((name, at) => {
      const [outer, inner] = [`sqo${at}${this.tag}`, `sqi${at}${this.tag}`];
      ip('netns', 'add', name);
      ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner);
      ip('link', 'set', outer, 'master', this.bridge, 'up');
      ip('link', 'set', inner, 'netns', name);
      ip('-n', name, 'addr', 'add', `${this.address(at)}/24`, 'dev', inner);
      ip('-n', name, 'link', 'set', inner, 'up');
      ip('-n', name, 'link', 'set', 'lo', 'up');
    });
  }

  address(host: number): string {
    return `${this.net}.${host + 2}`;
  }

  /** The command in front of a program that runs on that host. */
  on(host: number): string[] {
    return ['ip', 'netns', 'exec', this.names[host]!];
  }

  close(): void {
    for (const name of this.names) ip('netns', 'del', name);
    ip('link', 'del', this.bridge);
  }
}

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}

/** Whether this user may make such hosts. */
export const mayNetwork = ((): boolean => {
  try {
    new TwoHosts().close();
    return true;
  } catch {
    return false;
  }
})();
