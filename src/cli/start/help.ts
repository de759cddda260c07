// Draws the help pages: as wide as the terminal, at most 100 columns. The first page groups the commands by what one
// wants to do. The framework's own page lists topics and commands apart, in the order of the alphabet.
import { CommandHelp, Help } from '@oclif/core/help';

/** A wider line is hard to read. */
const WIDEST = 100;
/** What a pipe and an unknown terminal get. */
const USUAL = 80;
const NARROWEST = 40;

/** `OCLIF_COLUMNS` is the framework's own variable. The build uses it to draw a page for another width. */
export function helpWidth(stream: { isTTY?: boolean; columns?: number }, env: NodeJS.ProcessEnv): number {
  const columns = Number.parseInt(env['OCLIF_COLUMNS'] ?? '', 10) || (stream.isTTY && stream.columns) || USUAL;
  return Math.min(Math.max(columns, NARROWEST), WIDEST);
}

const FIRST: [command: string, does: string][] = [
  ['seq lab up', 'start a real cluster on this machine'],
  ['seq status -c lab', 'who leads, what is committed, what to do next'],
  ['seq explain CODE', 'what a code, a state or a message means'],
];

/** Every command and topic of the first level. What is in no group is shown last, under MORE. */
const GROUPS: [title: string, names: string[]][] = [
  ['START', ['lab', 'context', 'config', 'cluster', 'lane', 'run', 'service', 'submit', 'completion']],
  ['LOOK', ['status', 'watch', 'history', 'stream', 'trace', 'alerts', 'dashboard', 'explain']],
  ['JUDGE', ['check', 'wait', 'doctor']],
  ['REPAIR', ['repair', 'node', 'epoch', 'stepdown', 'hold', 'resume']],
  ['PROVE', ['chaos', 'bench']],
];

class OneCommandHelp extends CommandHelp {
  /** Arguments and the command's own flags. Flags that many commands share are listed below. */
  protected override defaultUsage(): string {
    const flags = Object.values(this.command.flags ?? {}).filter((flag) => !flag.hidden);
    const args = Object.values(this.command.args ?? {}).filter((arg) => !arg.hidden);
    const own = flags.filter((flag) => !flag.helpGroup);
    return [
      this.command.id,
      ...args.map((arg) => this.arg(arg)),
      ...own.map((flag) => {
        const repeated = flag.type === 'option' && flag.multiple ? '...' : '';
        const value = flag.type === 'option' ? ` ${flag.helpValue ?? 'VALUE'}${repeated}` : '';
        const name = flag.type === 'boolean' && flag.allowNo ? `--[no-]${flag.name}` : `--${flag.name}`;
        return flag.required ? `${name}${value}` : `[${name}${value}]`;
      }),
      ...(own.length < flags.length ? ['[FLAGS]'] : []),
    ].join(' ');
  }

  /** The summary stands above already. */
  protected override description(): string | undefined {
    const text = this.command.description;
    return text === undefined || text === this.command.summary ? undefined : this.wrap(this.render(text));
  }
}

export class SeqHelp extends Help {
  protected override CommandHelpClass = OneCommandHelp;

  /** The framework does not break the first sentence of a page. */
  protected override log(...texts: string[]): void {
    super.log(...texts.map((text) => (/^\S[^\n]*\n*$/.test(text) ? this.wrap(text) : text)));
  }

  protected override async showRootHelp(): Promise<void> {
    const [description = '', ...rest] = this.formatRoot().split('\n');
    this.log(description);
    this.log(rest.join('\n'));
    this.log('');
    this.log(this.section('FIRST', this.list(FIRST)));
    this.log('');
    const entries = this.entries();
    const grouped = new Set(GROUPS.flatMap(([, names]) => names));
    for (const [title, names] of [
      ...GROUPS,
      ['MORE', [...entries.keys()].filter((name) => !grouped.has(name))] as [string, string[]],
    ]) {
      const rows = names.flatMap((name): [string, string][] =>
        entries.has(name) ? [[name, entries.get(name) as string]] : [],
      );
      if (rows.length === 0) continue;
      this.log(this.section(title, this.list(rows)));
      this.log('');
    }
  }

  /** Names of the first level, each with one sentence. A topic is described as a whole. */
  private entries(): Map<string, string> {
    const found = new Map<string, string>();
    for (const { id, summary } of this.sortedCommands) if (id !== '' && !id.includes(':')) found.set(id, summary ?? '');
    for (const { name, description } of this.sortedTopics)
      if (!name.includes(':')) found.set(name, description ?? found.get(name) ?? '');
    return found;
  }

  private list(rows: [string, string][]): string {
    return this.renderList(rows, { indentation: 2, spacer: '\n', stripAnsi: this.opts.stripAnsi ?? false });
  }
}
