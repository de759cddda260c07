// Describes the machine on which the figures were measured. The programs themselves report their versions.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, release, totalmem } from 'node:os';
import { etcdProgram } from '../support/etcd.js';

export type Machine = Record<string, string>;

export function machineOf(version: string): Machine {
  const said = (program: string, ...args: string[]): string =>
    spawnSync(program, args, { encoding: 'utf8' }).stdout?.split('\n')[0]?.trim() ?? '';
  const etcd = etcdProgram();
  return {
    processors: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${osName()}, Linux ${release()} ${arch()}`.replace(
      'Linux',
      process.platform === 'linux' ? 'Linux' : process.platform,
    ),
    seq: version,
    node: process.version,
    redis: /v=(\S+)/.exec(said('redis-server', '--version'))?.[1] ?? said('valkey-server', '--version'),
    etcd: etcd.path === null ? `not there (${etcd.why})` : said(etcd.path, '--version').replace('etcd Version: ', ''),
    disk: said('findmnt', '-no', 'SOURCE,FSTYPE', '-T', '/tmp').replace(/\s+/g, ' '),
  };
}

function osName(): string {
  try {
    return /PRETTY_NAME="?([^"\n]+)/.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform;
  } catch {
    return process.platform;
  }
}
