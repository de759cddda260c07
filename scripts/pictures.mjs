// `npm run pictures`: makes the pictures of the terminal in README.md and docs/ from the program. It runs a lab of its
// own in a temporary home, and reads each screen from a real terminal (tmux) of a fixed size. Each screen gives an SVG
// in docs/pictures and the text block below a line `<!-- screen: NAME -->` in a document. A second run changes only
// heights, times and process ids.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrapOrEnd, ensureTestTools } from './bootstrap.mjs';
import { root } from './paths.mjs';

const LIMIT_MS = 30_000;
const ATTEMPTS = 4;
/** tmux prints its 16 colours as SGR 30–37 and 90–97. These are the colours that the pictures use for them. */
const PALETTE = ['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4'];
const BRIGHT = ['#6e7681', '#ffa198', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#56d4dd', '#ffffff'];
const [BACKGROUND, FOREGROUND] = ['#0d1117', '#e6edf3'];
const [CELL_WIDTH, CELL_HEIGHT, MARGIN, FONT_SIZE] = [8.4, 18, 12, 14];

bootstrapOrEnd();
ensureTestTools();

const home = mkdtempSync(join(tmpdir(), 'seq-pictures-'));
const environment = {
  PATH: process.env.PATH,
  HOME: home,
  XDG_CONFIG_HOME: join(home, 'config'),
  XDG_STATE_HOME: join(home, 'state'),
  LANG: 'C.UTF-8',
  // On a busy machine a healthy node must not appear silent.
  SEQ_NODE_TIMEOUT: '500ms',
};
// Each terminal is a tmux server of its own, because the previous server may not have ended yet.
let terminals = 0;
const socket = () => `seq-pictures-${process.pid}-${terminals}`;
const program = join(root, 'bin', 'run.js');

function seq(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    env: environment,
    cwd: home,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`seq ${args.join(' ')} ended with ${status}\n${stdout}${stderr}`);
  return stdout;
}

function tmux(...args) {
  return execFileSync('tmux', ['-L', socket(), '-f', '/dev/null', ...args], {
    encoding: 'utf8',
    env: { ...process.env, TMUX: '', LANG: 'C.UTF-8' },
  });
}

/** Opens a shell in a terminal of this size. In it `seq` is the program. */
function openTerminal(columns, rows) {
  terminals += 1;
  const shell = join(home, 'shell.sh');
  writeFileSync(shell, `seq() { "${process.execPath}" "${program}" "$@"; }\nPS1='$ '\n`);
  const variables = Object.entries({ ...environment, ENV: shell, TERM: 'screen-256color' });
  const size = ['-x', String(columns), '-y', String(rows)];
  const command = ['env', '-i', ...variables.map(([name, value]) => `${name}=${value}`), 'sh', '-i'];
  tmux('new-session', '-d', '-s', 'w', ...size, '-c', home, ...command);
}

const keys = (...names) => tmux('send-keys', '-t', 'w', ...names);
const screen = (...flags) =>
  tmux('capture-pane', '-p', ...flags, '-t', 'w')
    .replace(/\n+$/, '')
    .split('\n');
const closeTerminal = () => spawnSync('tmux', ['-L', socket(), 'kill-server']);

async function until(what, holds) {
  const end = performance.now() + LIMIT_MS;
  while (!holds(screen().join('\n'))) {
    if (performance.now() > end) throw new Error(`${what}: not within ${LIMIT_MS} ms\n${screen().join('\n')}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/**
 * Types a line into a new terminal, presses the keys, and reads the screen once `shows` is true. The typed line stays
 * in the picture unless the program uses the whole screen.
 */
async function take({ columns, rows, line, press = [], shows }) {
  openTerminal(columns, rows);
  try {
    await until('a prompt', (text) => text.trimEnd().endsWith('$'));
    tmux('send-keys', '-t', 'w', '-l', line);
    keys('Enter');
    const [first, ...later] = Array.isArray(shows) ? shows : [shows];
    await until(line, (text) => first.test(text));
    for (const [index, key] of press.entries()) {
      keys(key);
      await until(`${line}, key ${key}`, (text) => (later[index] ?? first).test(text));
    }
    // The prompt that follows an answer is not part of the picture.
    const lines = screen('-e');
    while (lines.length > 1 && /^\s*\$?\s*$/.test(plain(lines.at(-1)))) lines.pop();
    return { columns, lines };
  } finally {
    closeTerminal();
  }
}

const plain = (line) => line.replace(/\x1b\[[\d;]*m|\x0e|\x0f/g, '').trimEnd();
const escapeXml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/**
 * Cuts one line with SGR sequences into pieces of equal style, each with its column. `style` carries over from line to
 * line.
 */
function pieces(line, style) {
  const found = [];
  let column = 0;
  for (const part of line.split(/(\x1b\[[\d;]*m)/)) {
    const codes = /^\x1b\[([\d;]*)m$/.exec(part);
    if (codes) applySgr(style, codes[1] === '' ? [0] : codes[1].split(';').map(Number));
    else if (part !== '') {
      found.push({ text: part, column, style: { ...style } });
      column += [...part].length;
    }
  }
  return found;
}

function applySgr(style, codes) {
  for (const code of codes) {
    if (code === 0) Object.assign(style, { colour: null, back: null, bold: false, dim: false, inverse: false });
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 22) Object.assign(style, { bold: false, dim: false });
    else if (code === 7) style.inverse = true;
    else if (code === 27) style.inverse = false;
    else if (code >= 30 && code <= 37) style.colour = PALETTE[code - 30];
    else if (code >= 90 && code <= 97) style.colour = BRIGHT[code - 90];
    else if (code === 39) style.colour = null;
    else if (code >= 40 && code <= 47) style.back = PALETTE[code - 40];
    else if (code >= 100 && code <= 107) style.back = BRIGHT[code - 100];
    else if (code === 49) style.back = null;
  }
}

/**
 * Text stays text, so that it can be searched and copied. Each piece states its width, so that any monospaced font
 * fits.
 */
function svg(title, { columns, lines }) {
  const width = Math.ceil(columns * CELL_WIDTH + 2 * MARGIN);
  const height = lines.length * CELL_HEIGHT + 2 * MARGIN;
  const style = {};
  applySgr(style, [0]);
  const drawn = lines.flatMap((line, row) =>
    pieces(line, style).flatMap((piece) => {
      const { inverse, bold, dim } = piece.style;
      const colour = inverse
        ? (piece.style.back ?? BACKGROUND)
        : (piece.style.colour ?? (piece.style.back === null ? FOREGROUND : BACKGROUND));
      const back = inverse ? (piece.style.colour ?? FOREGROUND) : piece.style.back;
      const length = [...piece.text].length;
      const [x, y] = [MARGIN + piece.column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT].map((at) => at.toFixed(1));
      const wide = (length * CELL_WIDTH).toFixed(1);
      const box =
        back === null ? [] : [`<rect x="${x}" y="${y}" width="${wide}" height="${CELL_HEIGHT}" fill="${back}"/>`];
      if (piece.text.trim() === '') return box;
      const look = `fill="${colour}"${bold ? ' font-weight="bold"' : ''}${dim ? ' opacity="0.65"' : ''}`;
      const baseline = (Number(y) + CELL_HEIGHT - 5).toFixed(1);
      return [...box, `<text x="${x}" y="${baseline}" textLength="${wide}" ${look}>${escapeXml(piece.text)}</text>`];
    }),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escapeXml(title)}</title>`,
    '<!-- Made by scripts/pictures.mjs from the program. -->',
    `<rect width="${width}" height="${height}" rx="6" fill="${BACKGROUND}"/>`,
    `<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT_SIZE}"` +
      ' xml:space="preserve" style="white-space:pre">',
    ...drawn,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Puts each screen into the code block below its marker. Reports markers that have no screen. */
function updateDocuments(screens) {
  const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => join('docs', name))];
  for (const file of documents.filter((name) => name.endsWith('.md'))) {
    const text = readFileSync(join(root, file), 'utf8');
    const updated = text.replace(/(<!-- screen: ([\w-]+) -->\n+)```[a-z]*\n[\s\S]*?```/g, (_, marker, name) => {
      if (!screens.has(name)) throw new Error(`${file}: there is no screen '${name}'`);
      return `${marker}\`\`\`text\n${screens.get(name).lines.map(plain).join('\n')}\n\`\`\``;
    });
    if (updated !== text) writeFileSync(join(root, file), updated);
  }
}

const screens = new Map();
const children = [];
/** Tries again when the screen showed something else: on a busy machine a healthy cluster appears slow. */
const picture = async (name, options) => {
  for (let attempt = 1; !screens.has(name); attempt += 1)
    try {
      screens.set(name, await take(options));
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  process.stderr.write(`pictures: ${name}\n`);
};
const healthy = () => seq('wait', '--for', 'healthy', '--timeout', '1m');

/** A second lane on the same nodes, for the tabs of `watch`. */
function startLane(lane) {
  const args = ['run', '--context', 'lab', '--lane', lane, '--id', 'seq-c', '--store', join(home, lane), '--bootstrap'];
  children.push(spawn(process.execPath, [program, ...args], { env: environment, cwd: home, stdio: 'ignore' }));
  seq('wait', '--lane', lane, '--for', 'leader', '--timeout', '1m');
}

async function takeAll() {
  const watch = { columns: 80, rows: 24, line: 'seq watch' };
  seq('lab', 'up');
  seq('context', 'use', 'lab');
  healthy();
  writeFileSync(join(home, 'orders.txt'), 'buy 3\nsell 1\nbuy 7\n');
  seq('submit', 'orders.txt');
  await picture('status', {
    columns: 100,
    rows: 24,
    line: 'seq status',
    shows: /OK {2}seq-a leads[\s\S]*seq-b +follower [\s\S]*\n\$/,
  });
  await picture('inspect', {
    columns: 100,
    rows: 16,
    line: 'seq stream inspect --limit 6',
    shows: /all nodes hold the same[\s\S]*damaged[\s\S]*\n\$/,
  });
  const rated = / OK [\s\S]*max 1\.0\/s/;
  await picture('watch', { ...watch, shows: rated });

  startLane('orders');
  const lanes = { columns: 140, rows: 40, line: 'seq watch --lane ,orders' };
  await picture('watch-large', { ...lanes, shows: /orders {2}OK[\s\S]*commit \d[\s\S]*next: nothing to do/ });
  for (const child of children.splice(0)) child.kill('SIGTERM');

  seq('lab', 'pause', 'r3');
  const silent = /r3 +DOWN[\s\S]*next: seq lab unpause r3/;
  await picture('status-warn', {
    columns: 100,
    rows: 26,
    line: 'seq status',
    shows: /next: seq lab unpause r3[\s\S]*\n\$/,
  });
  seq('lab', 'unpause', 'r3');
  healthy();
  // The watch starts while all nodes are healthy and then sees one fall silent, so that events and ages are in the
  // picture.
  const pauseLater = setTimeout(() => seq('lab', 'pause', 'r3'), 6000);
  await picture('watch-silent', { ...watch, shows: /r3 +DOWN[\s\S]*r3 gone[\s\S]*next: seq lab unpause r3/ });
  clearTimeout(pauseLater);
  const node = { columns: 100, rows: 30, line: 'seq watch', press: ['j', 'j', 'Enter'] };
  await picture('watch-node', { ...node, shows: [silent, silent, /› r3/, /NODE r3 [\s\S]*round trip/] });
  await picture('watch-small', { columns: 60, rows: 16, line: 'seq watch', shows: silent });
  seq('lab', 'unpause', 'r3');
  healthy();
  await picture('watch-history', {
    ...watch,
    press: ['h'],
    shows: [rated, /commit latency {2}now [\s\S]*lag[\s\S]*ago/],
  });
}

try {
  await takeAll();
  const folder = join(root, 'docs', 'pictures');
  mkdirSync(folder, { recursive: true });
  const titles = {
    status: 'seq status: all is well',
    'status-warn': 'seq status: one node of three does not answer',
    inspect: 'seq stream inspect: which block each node holds at each height',
    watch: 'seq watch: all is well',
    'watch-silent': 'seq watch: one node of three does not answer',
  };
  for (const [name, title] of Object.entries(titles))
    writeFileSync(join(folder, `${name}.svg`), svg(title, screens.get(name)));
  updateDocuments(screens);
} finally {
  closeTerminal();
  for (const child of children) child.kill('SIGTERM');
  spawnSync(process.execPath, [program, 'lab', 'down'], { env: environment, cwd: home });
  rmSync(home, { recursive: true, force: true });
}
