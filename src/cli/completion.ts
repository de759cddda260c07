// Completion scripts made from the command manifest: words and flags are in the script, ids are asked for when TAB is pressed. Pure.

export interface CommandWords {
  /** `stream tail`. */
  words: string;
  summary: string;
  /** `--name`, with its fixed choices where it has any. */
  flags: { name: string; short: string | null; takesValue: boolean; options: string[]; description: string }[];
}

interface ManifestCommand {
  id: string;
  hidden?: boolean;
  summary?: string;
  flags: Record<string, { type: string; char?: string; options?: readonly string[]; description?: string; hidden?: boolean }>;
}

export function commandTree(commands: readonly ManifestCommand[]): CommandWords[] {
  return commands.filter((command) => !command.hidden).map((command) => ({
    words: command.id.replaceAll(':', ' '),
    summary: command.summary ?? '',
    flags: Object.entries(command.flags).filter(([, flag]) => !flag.hidden).map(([name, flag]) => ({
      name: `--${name}`, short: flag.char ? `-${flag.char}` : null, takesValue: flag.type === 'option', options: [...(flag.options ?? [])], description: flag.description ?? '',
    })),
  })).sort((a, b) => a.words.localeCompare(b.words));
}

/** Flags whose values are ids that only the running system knows. */
const IDS: Record<string, string> = { '--context': 'contexts', '--on': 'nodes', '--to': 'sequencers', '--expect-leader': 'sequencers' };

/** word lists by prefix: '' → first words, 'stream' → its commands. */
function nextWords(tree: CommandWords[]): Map<string, Set<string>> {
  const next = new Map<string, Set<string>>();
  for (const { words } of tree) {
    const parts = words.split(' ');
    parts.forEach((part, at) => {
      const prefix = parts.slice(0, at).join(' ');
      next.set(prefix, (next.get(prefix) ?? new Set()).add(part));
    });
  }
  for (const command of ['use', 'rm', 'set']) next.delete(`context ${command}`);
  return next;
}

export function completionScript(shell: 'bash' | 'zsh' | 'fish', tree: CommandWords[]): string {
  if (shell === 'fish') return fish(tree);
  const body = bash(tree);
  return shell === 'bash' ? `# seq completion for bash: eval "$(seq completion bash)"\n${body}` : `#compdef seq seqctl\n# seq completion for zsh: eval "$(seq completion zsh)"\nautoload -Uz bashcompinit compinit && compinit -u && bashcompinit\n${body}`;
}

function bash(tree: CommandWords[]): string {
  const words = [...nextWords(tree)].map(([prefix, next]) => `    '${prefix}') words='${[...next].sort().join(' ')}' ;;`);
  const flags = tree.map(({ words: id, flags: own }) => `    '${id}') flags='${own.flatMap((flag) => flag.short ? [flag.name, flag.short] : [flag.name]).join(' ')}' ;;`);
  const values = new Map<string, string>();
  for (const flag of tree.flatMap((command) => command.flags)) if (flag.options.length > 0) values.set([flag.name, flag.short].filter(Boolean).join('|'), flag.options.join(' '));
  const choices = [...values].map(([names, options]) => `    ${names}) COMPREPLY=($(compgen -W '${options}' -- "$cur")); return ;;`);
  const ids = Object.entries(IDS).map(([name, kind]) => `    ${name === '--context' ? '--context|-c' : name}) COMPREPLY=($(compgen -W "$("\${COMP_WORDS[0]}" completion ids ${kind} -o plain -q 2>/dev/null)" -- "$cur")); return ;;`);
  const valued = [...new Set(tree.flatMap((command) => command.flags).filter((flag) => flag.takesValue).flatMap((flag) => flag.short ? [flag.name, flag.short] : [flag.name]))].join('|');
  return `_seq_complete() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" id='' words='' flags='' word i skip=0
  COMPREPLY=()
  case "$prev" in
${ids.join('\n')}
${choices.join('\n')}
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if ((skip)); then skip=0; continue; fi
    case "$word" in
      ${valued}) skip=1 ;;
      -*) ;;
      *) id="\${id:+$id }$word" ;;
    esac
  done
  case "$id" in 'context use'|'context rm'|'context set') words="$("\${COMP_WORDS[0]}" completion ids contexts -o plain -q 2>/dev/null)" ;; esac
  case "$id" in
${words.join('\n')}
  esac
  case "$id" in
${flags.join('\n')}
  esac
  if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W "$flags --help" -- "$cur")); else COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
}
complete -o default -F _seq_complete seq seqctl
`;
}

function fish(tree: CommandWords[]): string {
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = ['# seq completion for fish: seq completion fish | source', 'function __seq_at', '  set -l words (commandline -opc)[2..-1]', "  test (string join ' ' -- (string match -v -- '-*' $words)) = \"$argv\"", 'end', 'function __seq_in', '  set -l words (commandline -opc)[2..-1]', "  string match -q -- \"$argv*\" (string join ' ' -- (string match -v -- '-*' $words))", 'end'];
  for (const program of ['seq', 'seqctl']) {
    lines.push(`complete -c ${program} -f`);
    for (const [prefix, next] of nextWords(tree)) {
      for (const word of [...next].sort()) {
        const summary = tree.find((command) => command.words === [prefix, word].filter(Boolean).join(' '))?.summary ?? '';
        lines.push(`complete -c ${program} -n ${quote(`__seq_at ${prefix}`.trim())} -a ${word}${summary ? ` -d ${quote(summary)}` : ''}`);
      }
    }
    for (const command of ['use', 'rm', 'set']) lines.push(`complete -c ${program} -n '__seq_at context ${command}' -a '(${program} completion ids contexts -o plain -q 2>/dev/null)'`);
    for (const { words, flags } of tree) {
      for (const flag of flags) {
        const kind = IDS[flag.name];
        const value = kind ? ` -x -a '(${program} completion ids ${kind} -o plain -q 2>/dev/null)'` : flag.options.length > 0 ? ` -x -a ${quote(flag.options.join(' '))}` : flag.takesValue ? ' -r' : '';
        lines.push(`complete -c ${program} -n ${quote(`__seq_in ${words}`)} -l ${flag.name.slice(2)}${flag.short ? ` -s ${flag.short.slice(1)}` : ''}${value}${flag.description ? ` -d ${quote(flag.description)}` : ''}`);
      }
    }
  }
  return `${lines.join('\n')}\n`;
}
