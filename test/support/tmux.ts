// A real terminal for one test: its own tmux server. Keys go in, the screen comes out. Waits for content, never for
// time.
import { execFileSync, spawnSync } from 'node:child_process';

let servers = 0;

export class Terminal {
  private readonly socket = `seq-test-${process.pid}-${(servers += 1)}`;

  /** Starts a plain shell in a terminal of that size. */
  constructor(columns: number, rows: number, env: NodeJS.ProcessEnv, cwd: string) {
    if (spawnSync('tmux', ['-V']).error !== undefined)
      throw new Error('tmux is not installed and these tests need it: apt-get install tmux');
    const pairs = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
    this.tmux(
      'new-session',
      '-d',
      '-s',
      'w',
      '-x',
      String(columns),
      '-y',
      String(rows),
      '-c',
      cwd,
      'env',
      '-i',
      ...pairs,
      'PS1=$ ',
      'TERM=screen-256color',
      'sh',
    );
    this.tmux('set-option', '-g', '@bells', '0');
    this.tmux('set-option', '-g', 'bell-action', 'any');
    this.tmux('set-hook', '-g', 'alert-bell', 'set-option -gF @bells "#{e|+:#{@bells},1}"');
  }

  keys(...keys: string[]): void {
    this.tmux('send-keys', '-t', 'w', ...keys);
  }

  /** Types a line into the shell. */
  type(line: string): void {
    this.tmux('send-keys', '-t', 'w', '-l', line);
    this.keys('Enter');
  }

  resize(columns: number, rows: number): void {
    this.tmux('resize-window', '-t', 'w', '-x', String(columns), '-y', String(rows));
  }

  screen(): string[] {
    return this.tmux('capture-pane', '-p', '-t', 'w').replace(/\n$/, '').split('\n');
  }

  /** How often the bell has rung in this terminal. */
  bells(): number {
    return Number(/\d+/.exec(this.tmux('show-options', '-gqv', '@bells'))?.[0] ?? 0);
  }

  /** `alternate_on`, `cursor_flag`, `wrap_flag` … as tmux knows them. */
  fact(name: string): string {
    return this.tmux('display', '-p', '-t', 'w', `#{${name}}`).trim();
  }

  async until<T>(what: string, probe: (screen: string[]) => T | undefined | false, limitMs = 120_000): Promise<T> {
    const end = performance.now() + limitMs;
    for (;;) {
      const screen = this.screen();
      const found = probe(screen);
      if (found !== undefined && found !== false) return found;
      if (performance.now() > end)
        throw new Error(`${what}: not within ${limitMs} ms. The screen:\n${screen.join('\n')}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  close(): void {
    spawnSync('tmux', ['-L', this.socket, 'kill-server']);
  }

  private tmux(...args: string[]): string {
    return execFileSync('tmux', ['-L', this.socket, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { ...process.env, TMUX: '', LANG: 'C.UTF-8' },
    });
  }
}
