// Runs many command lines in one process, one after the other, through the same entry as bin/run.js. It captures what
// each one wrote. argv: a file with [{argv, env}], and a file for the answers [{code, stdout, stderr}]. Tests of
// streams, signals and start-up need a process for each command: spawn-seq.ts.
import { readFileSync, writeFileSync } from 'node:fs';
import { main } from '../../dist/cli/start/main.js';

const [, , casesFile, answersFile] = process.argv;
const root = new URL('../../', import.meta.url).pathname;
process.setMaxListeners(0);
const first = { ...process.env };
const answers = [];
/**
 * For each flag: the first value that an earlier answer printed after it. In later command lines, this value replaces
 * the word in capitals.
 */
const printed = { DIGEST: /--confirm ([0-9a-f]{8,})/, HASH: /--choose-block ([0-9a-f]{8,})/ };
const known = {};
for (const { argv: written, env } of JSON.parse(readFileSync(casesFile, 'utf8'))) {
  for (const name of Object.keys(process.env)) if (!(name in first)) delete process.env[name];
  Object.assign(process.env, first, env);
  const argv = written.map((word) => known[word] ?? word);
  process.exitCode = undefined;
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    process[stream].write = (chunk, encoding, done) => {
      said[stream] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      const callback = typeof encoding === 'function' ? encoding : done;
      if (callback) queueMicrotask(callback);
      return true;
    };
  }
  let ended;
  await main({
    argv,
    root,
    end: (code) => {
      ended = code;
    },
  });
  for (const [name, pattern] of Object.entries(printed)) known[name] = pattern.exec(said.stdout)?.[1] ?? known[name];
  answers.push({ code: ended ?? Number(process.exitCode ?? 0), ...said });
  writeFileSync(answersFile, JSON.stringify(answers));
}
process.exit(0);
