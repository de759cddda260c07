// Debian hosts on one machine, for the pages of docs/DEPLOYING.md. A host has its own name, network, processes and disk:
// namespaces, and a layer in memory over this machine's root folder. What is done there is gone with it. It needs root.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './spawn-seq.js';

/** Where each host sees this folder, the package that it installs. */
const PACKAGE = '/opt/seqctl';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The page's hosts are in this network. In a test they are in one that this machine does not have. */
const WRITTEN = '10.0.0.';

export class DebianHosts {
  readonly folder = mkdtempSync(join(tmpdir(), 'seq-hosts-'));
  private readonly tag = String(process.pid % 100_000);
  private readonly bridge = `sd${this.tag}`;
  private readonly net = `10.${150 + (process.pid % 50)}.${process.pid % 250}.`;
  private readonly hosts = new Map<string, { process: ChildProcess; pid: number; folder: string }>();

  constructor() {
    here(`ip link add ${this.bridge} type bridge && ip addr add ${this.net}254/24 dev ${this.bridge}`);
    here(`ip link set ${this.bridge} up`);
  }

  /** Text of the page, with the addresses of these hosts. */
  located(text: string): string {
    return text.replaceAll(WRITTEN, this.net);
  }

  /** A host with that name, at the address 10.0.0.NUMBER of the page. */
  async add(name: string, number: number): Promise<void> {
    const folder = join(this.folder, name);
    const tree = join(folder, 'root');
    const script = [
      `mkdir -p ${folder} && mount -t tmpfs tmpfs ${folder}`,
      `mkdir -p ${folder}/upper ${folder}/work ${tree}`,
      `mount -t overlay overlay -o lowerdir=/,upperdir=${folder}/upper,workdir=${folder}/work ${tree}`,
      `mount -t proc proc ${tree}/proc && mount --rbind /dev ${tree}/dev`,
      `mount -t tmpfs tmpfs ${tree}/run && mount -t tmpfs tmpfs ${tree}/root && mount -t tmpfs tmpfs ${tree}/tmp`,
      `mkdir -p ${tree}${PACKAGE} && mount --bind ${root} ${tree}${PACKAGE}`,
      // This machine may run services of its own, and have users that the page makes.
      `rm -rf ${tree}/etc/service/* ${tree}/etc/sv/seq ${tree}/etc/seq ${tree}/var/lib/redis/*`,
      `hostname ${name} && ip link set lo up && echo ready && exec chroot ${tree} sleep infinity`,
    ].join(' && ');
    const child = spawn('unshare', [...NAMESPACES, '--fork', '--kill-child', 'bash', '-c', script], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', () => resolve());
      child.on('close', () => reject(new Error(`${name}: ${String(child.stderr.read())}`)));
    });
    const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim());
    this.hosts.set(name, { process: child, pid, folder: `/proc/${pid}/root` });
    const outer = `sd${number}x${this.tag}`.slice(0, 15);
    here(`ip link add ${outer} type veth peer name eth0 netns ${pid} && ip link set ${outer} master ${this.bridge} up`);
    here(
      `nsenter -t ${pid} -n ip addr add ${this.net}${number}/24 dev eth0 && nsenter -t ${pid} -n ip link set eth0 up`,
    );
  }

  /** Copies a folder of this machine, as `scp -r` would. */
  copy(from: string, name: string): void {
    here(`cp -r ${from} ${this.folderOf(name)}/root/seq-files`);
  }

  /** Runs lines of the page there as root, one after the other, and returns what they wrote. The first failure is told. */
  run(name: string, lines: string, env: Record<string, string> = {}): Promise<string> {
    const line = this.located(lines)
      .replaceAll(/^(npm install -g .*) seqctl$/gm, `$1 ${PACKAGE}`)
      .replace(' nodejs npm ', NPM_INSIDE ? ' nodejs ' : ' nodejs npm ');
    const script = `cd /root/seq-files 2>/dev/null || cd /root\n${line}`;
    return output('nsenter', [...this.inside(name, env), 'bash', '-ec', script]);
  }

  /** Starts what the system's init starts: the services of runit. They end with the host. */
  startRunit(name: string, env: Record<string, string>): void {
    spawn('nsenter', [...this.inside(name, env), 'runsvdir', '-P', '/etc/service'], { stdio: 'ignore' });
  }

  private inside(name: string, env: Record<string, string>): string[] {
    const clean = ['env', '-i', `PATH=${PATH}`, 'HOME=/root', ...Object.entries(env).map(([k, v]) => `${k}=${v}`)];
    return ['-t', String(this.pidOf(name)), '-n', '-m', '-u', '-i', '-p', '-r', '-w', ...clean];
  }

  /** The root folder of that host, as this machine sees it. */
  folderOf(name: string): string {
    return this.hosts.get(name)!.folder;
  }

  private pidOf(name: string): number {
    return this.hosts.get(name)!.pid;
  }

  async close(): Promise<void> {
    for (const { process: one, pid } of this.hosts.values()) {
      // The end of a pid namespace's first process is the end of all of them.
      const ended = new Promise((resolve) => one.on('close', resolve));
      process.kill(pid, 'SIGKILL');
      await ended;
    }
    spawnSync('ip', ['link', 'del', this.bridge]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The package nodejs of NodeSource has npm inside, and refuses Debian's npm beside it. */
const NPM_INSIDE = spawnSync('dpkg', ['-S', '/usr/bin/npm'], { encoding: 'utf8' }).stdout.startsWith('nodejs:');

const NAMESPACES = ['--net', '--mount', '--uts', '--ipc', '--pid'];

/** Runs lines on this machine. */
export function output(program: string, args: string[], env: NodeJS.ProcessEnv = process.env): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
    child.on('close', (code) => {
      if (code === 0) resolve(text);
      else reject(new Error(`${args.at(-1)}\nended with ${code}:\n${text}`));
    });
  });
}

function here(line: string): void {
  const { status, stderr } = spawnSync('bash', ['-c', line], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${line}: ${stderr}`);
}

/** Whether this machine is a Debian that may make such hosts, and has the packages that the page installs. */
export const mayDeploy =
  ['/usr/bin/runsvdir', '/etc/init.d/redis-server', '/etc/redis/redis.conf'].every((file) => existsSync(file)) &&
  spawnSync('unshare', [...NAMESPACES, '--fork', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0;
