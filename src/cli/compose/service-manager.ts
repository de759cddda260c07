// What the service manager of this machine is told (sd_notify): that the sequencer serves, that its main loop turns,
// and that it stops. Only under a manager that asks for it, by NOTIFY_SOCKET.
// That socket takes datagrams, which Node cannot send, and `systemd-notify` can. To start a program costs the main loop
// a millisecond or more. So one shell is started once, and a message is a line in its pipe. When this process dies, the
// pipe ends, and the shell with it.
import { spawn, type ChildProcess } from 'node:child_process';
import type { SeqLog } from '../../core/log/log.js';

const RELAY = 'while IFS= read -r line; do systemd-notify "$line" || exit 1; done';

export interface ServiceManager {
  /** It serves. From now on the manager hears that it is alive, for as long as `alive` says so. */
  ready(alive: () => boolean): void;
  stopping(): void;
  close(): void;
}

/** null: no service manager asks. The variables are taken away, so that no child believes that it is asked. */
export function serviceManager(env: NodeJS.ProcessEnv, log: SeqLog): ServiceManager | null {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: usec, WATCHDOG_PID: pid } = env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  if (!socket) return null;
  const watched = pid === undefined || pid === '' || Number(pid) === process.pid;
  return new Notifier(start(socket, env, log), watched ? Number(usec ?? 0) / 1000 : 0);
}

function start(socket: string, env: NodeJS.ProcessEnv, log: SeqLog): ChildProcess {
  const relay = spawn('/bin/sh', ['-c', RELAY], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: env['PATH'] ?? '/usr/bin:/bin', NOTIFY_SOCKET: socket },
  });
  const failed = (why: string) =>
    log.line('warn', `the service manager cannot be told anything: ${why}`, { event: 'service' });
  relay.on('error', (error) => failed(error.message));
  relay.on('exit', (code) => {
    if (code !== 0 && code !== null) failed(`systemd-notify ended with ${code}`);
  });
  // A relay that is gone has said why.
  relay.stdin?.on('error', () => undefined);
  relay.unref();
  return relay;
}

class Notifier implements ServiceManager {
  private timer: NodeJS.Timeout | undefined;

  /** `watchdogMs`: after this long without a sign of life the manager ends the process. 0: never. */
  constructor(
    private readonly relay: ChildProcess,
    private readonly watchdogMs: number,
  ) {}

  ready(alive: () => boolean): void {
    this.tell('READY=1');
    if (!(this.watchdogMs > 0)) return;
    const sign = () => {
      if (alive()) this.tell('WATCHDOG=1');
    };
    sign();
    this.timer = setInterval(sign, Math.max(1, this.watchdogMs / 3));
    this.timer.unref();
  }

  stopping(): void {
    this.tell('STOPPING=1');
  }

  close(): void {
    clearInterval(this.timer);
    this.relay.stdin?.end();
  }

  private tell(message: string): void {
    this.relay.stdin?.write(`${message}\n`);
  }
}
