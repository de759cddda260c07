// Completion scripts made from the command manifest. Words and flags are in the script; ids are asked for when TAB is
// pressed. Pure.

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
  flags: Record<
    string,
    { type: string; char?: string; options?: readonly string[]; description?: string; hidden?: boolean }
  >;
}

export function commandTree(commands: readonly ManifestCommand[]): CommandWords[] {
  return commands
    .filter((command) => !command.hidden)
    .map((command) => ({
      words: command.id.replaceAll(':', ' '),
      summary: command.summary ?? '',
      flags: Object.entries(command.flags)
        .filter(([, flag]) => !flag.hidden)
        .map(([name, flag]) => ({
          name: `--${name}`,
          short: flag.char ? `-${flag.char}` : null,
          takesValue: flag.type === 'option',
          options: [...(flag.options ?? [])],
          description: flag.description ?? '',
        })),
    }))
    .sort((a, b) => a.words.localeCompare(b.words));
}

/** Flags whose values only the running system knows. Some of them take several values with commas between. */
const IDS: Record<string, string> = {
  '--context': 'contexts',
  '--on': 'nodes',
  '--to': 'sequencers',
  '--expect-leader': 'sequencers',
};
const LISTS = ['--on'];
/** Commands whose argument is an id of one kind. */
const ARGUMENTS: Record<string, string> = {
  'context use': 'contexts',
  'context rm': 'contexts',
  'context set': 'contexts',
  explain: 'codes',
  ...Object.fromEntries(
    ['kill', 'start', 'pause', 'unpause', 'wipe', 'logs'].map((act) => [`lab ${act}`, 'processes']),
  ),
};
const CONDITIONS = ['leader', 'healthy', 'restart-safe', 'height=', 'follower=', 'epoch>'];
/** Flags that name the cluster. Ids are asked of the cluster named on the line being typed. */
const TARGET = ['--context', '-c', '--node'];

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
  return next;
}

type Flag = CommandWords['flags'][number];
const namesOf = (flag: Flag): string[] => (flag.short ? [flag.name, flag.short] : [flag.name]);

function valuedFlags(tree: CommandWords[]): string[] {
  return [
    ...new Set(
      tree
        .flatMap((command) => command.flags)
        .filter((flag) => flag.takesValue)
        .flatMap(namesOf),
    ),
  ];
}

/** `command flag` → choices. `*` holds the choices that most commands offer. */
function choicesOf(tree: CommandWords[]): { id: string; flag: Flag; options: string[] }[] {
  const usual = new Map<string, string>();
  for (const flag of tree.flatMap((command) => command.flags))
    if (flag.options.length > 0 && !usual.has(flag.name)) usual.set(flag.name, flag.options.join(' '));
  const own = tree.flatMap(({ words, flags }) =>
    flags
      .filter((flag) => flag.options.length > 0 && usual.get(flag.name) !== flag.options.join(' '))
      .map((flag) => ({ id: words, flag, options: flag.options })),
  );
  const all = [...usual].map(([name, options]) => ({
    id: '*',
    flag: tree.flatMap((command) => command.flags).find((flag) => flag.name === name) as Flag,
    options: options.split(' '),
  }));
  return [
    ...own,
    ...all,
    {
      id: 'wait',
      flag: { name: '--for', short: null, takesValue: true, options: CONDITIONS, description: '' },
      options: CONDITIONS,
    },
  ];
}

export function completionScript(shell: 'bash' | 'zsh' | 'fish', tree: CommandWords[]): string {
  if (shell === 'fish') return fish(tree);
  const body = bash(tree);
  return shell === 'bash'
    ? `# seq completion for bash: eval "$(seq completion bash)"\n${body}`
    : `#compdef seq seqctl\n# seq completion for zsh: eval "$(seq completion zsh)"\nautoload -Uz ` +
        `bashcompinit compinit && compinit -u && bashcompinit\n${body}`;
}

/**
 * bash ends words at `=` and `:`, zsh does not. So the script splits the line again, and a reply is the part after the
 * last of these characters.
 */
function bash(tree: CommandWords[]): string {
  const words = [...nextWords(tree)].map(
    ([prefix, next]) => `    '${prefix}') words='${[...next].sort().join(' ')}' ;;`,
  );
  const args = Object.entries(ARGUMENTS).map(([id, kind]) => `    '${id}') words="$(_seq_ids ${kind})" ;;`);
  const flags = tree.map(({ words: id, flags: own }) => `    '${id}') flags='${own.flatMap(namesOf).join(' ')}' ;;`);
  const choices = choicesOf(tree).map(
    ({ id, flag, options }) =>
      `    ${namesOf(flag)
        .map((name) => (id === '*' ? `*' ${name}'` : `'${id} ${name}'`))
        .join('|')}) _seq_offer '${options.join(' ')}'; return ;;`,
  );
  const ids = Object.entries(IDS).map(
    ([name, kind]) =>
      `    ${name === '--context' ? "*' --context'|*' -c'" : `*' ${name}'`}) ` +
      (LISTS.includes(name) ? 'if [[ "$cur" == *,* ]]; then lead="$lead${cur%,*},"; cur="${cur##*,}"; fi; ' : '') +
      `_seq_offer "$(_seq_ids ${kind})"; return ;;`,
  );
  return `_seq_ids() { "\${w[0]}" completion ids "$1" "\${given[@]}" -o plain -q 2>/dev/null; }
_seq_offer() { COMPREPLY=($(compgen -P "$lead" -W "$1" -- "$cur")); }
_seq_complete() {
  local cur='' id='' words='' flags='' word last='' lead='' line=''
  local -a w given
  COMPREPLY=()
  if [[ -n "$ZSH_VERSION" ]]; then
    cur="\${COMP_WORDS[COMP_CWORD]}"
    w=("\${COMP_WORDS[@]:0:$COMP_CWORD}")
  else
    line="\${COMP_LINE:0:COMP_POINT}"
    read -ra w <<<"$line"
    if [[ "$line" != *[[:space:]] ]]; then cur="\${w[\${#w[@]}-1]}"; unset "w[\${#w[@]}-1]"; fi
  fi
  for word in "\${w[@]:1}"; do
    if [[ -n "$last" ]]; then
      case "$last" in ${TARGET.join('|')}) given+=("$last" "$word") ;; esac
      last=''
      continue
    fi
    case "$word" in
      ${TARGET.filter((name) => name.startsWith('--'))
        .map((name) => `${name}=*`)
        .join('|')}) given+=("$word") ;;
      ${valuedFlags(tree).join('|')}) last="$word" ;;
      -*) ;;
      *) id="\${id:+$id }$word" ;;
    esac
  done
  if [[ -z "$last" && "$cur" == --*=* ]]; then
    last="\${cur%%=*}"
    [[ -n "$ZSH_VERSION" ]] && lead="$last="
    cur="\${cur#*=}"
  fi
  if [[ -n "$last" ]]; then
    case "$id $last" in
${[...ids, ...choices].join('\n')}
    esac
    return
  fi
  if [[ "$cur" == -* ]]; then
    case "$id" in
${flags.join('\n')}
    esac
    _seq_offer "$flags --help"
    return
  fi
  case "$id" in
${[...args, ...words].join('\n')}
  esac
  _seq_offer "$words"
}
complete -o default -F _seq_complete seq seqctl
`;
}

function fish(tree: CommandWords[]): string {
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = [
    '# seq completion for fish: seq completion fish | source',
    '# The words of the command: without flags and their values.',
    'function __seq_words',
    '  set -l skip 0',
    '  for word in (commandline -opc)[2..-1]',
    '    if test $skip = 1',
    '      set skip 0',
    '      continue',
    '    end',
    '    switch $word',
    `      case ${valuedFlags(tree)
      .map((name) => quote(name))
      .join(' ')}`,
    '        set skip 1',
    "      case '-*'",
    "      case '*'",
    '        echo $word',
    '    end',
    '  end',
    'end',
    'function __seq_at',
    '  set -l words (__seq_words)',
    '  test "$words" = "$argv"',
    'end',
    'function __seq_in',
    '  set -l words (__seq_words)',
    '  string match -q -- "$argv*" "$words"',
    'end',
    '# Ids of the cluster that is being typed.',
    'function __seq_ids',
    '  set -l words (commandline -opc)',
    '  set -l given',
    '  set -l at 1',
    '  while test $at -lt (count $words)',
    '    set at (math $at + 1)',
    '    switch $words[$at]',
    `      case ${TARGET.map((name) => quote(name)).join(' ')}`,
    '        test $at -lt (count $words); and set -a given $words[$at] $words[(math $at + 1)]',
    `      case ${TARGET.filter((name) => name.startsWith('--'))
      .map((name) => quote(`${name}=*`))
      .join(' ')}`,
    '        set -a given $words[$at]',
    '    end',
    '  end',
    '  $words[1] completion ids $argv $given -o plain -q 2>/dev/null',
    'end',
  ];
  const choices = choicesOf(tree);
  for (const program of ['seq', 'seqctl']) {
    lines.push(`complete -c ${program} -f`);
    for (const [prefix, next] of nextWords(tree)) {
      for (const word of [...next].sort()) {
        const summary =
          tree.find((command) => command.words === [prefix, word].filter(Boolean).join(' '))?.summary ?? '';
        lines.push(
          `complete -c ${program} -n ${quote(`__seq_at ${prefix}`.trim())} -a ` +
            `${word}${summary ? ` -d ${quote(summary)}` : ''}`,
        );
      }
    }
    for (const [id, kind] of Object.entries(ARGUMENTS))
      lines.push(`complete -c ${program} -n ${quote(`__seq_at ${id}`)} -a '(__seq_ids ${kind})'`);
    for (const { words, flags } of tree) {
      for (const flag of flags) {
        const kind = IDS[flag.name];
        const options =
          choices.find((choice) => choice.id === words && choice.flag.name === flag.name)?.options ?? flag.options;
        const offered = LISTS.includes(flag.name) ? `(__fish_append , (__seq_ids ${kind}))` : `(__seq_ids ${kind})`;
        const value = kind
          ? ` -x -a ${quote(offered)}`
          : options.length > 0
            ? ` -x -a ${quote(options.map((option) => option.replaceAll('>', '\\>')).join(' '))}`
            : flag.takesValue
              ? ' -r'
              : '';
        lines.push(
          `complete -c ${program} -n ${quote(`__seq_in ${words}`)} -l ${flag.name.slice(2)}` +
            (flag.short ? ` -s ${flag.short.slice(1)}` : '') +
            value +
            (flag.description ? ` -d ${quote(flag.description)}` : ''),
        );
      }
    }
  }
  return `${lines.join('\n')}\n`;
}
