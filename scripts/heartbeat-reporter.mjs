// A reporter for vitest. It writes one line of JSON into the file SEQ_TEST_LINES whenever a file or test starts or
// ends. scripts/test.mjs reads that file: a file that does not grow means a hung test, and its last lines name that
// test.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './paths.mjs';

const path = process.env.SEQ_TEST_LINES ?? '/dev/null';
const write = (line) => appendFileSync(path, `${JSON.stringify(line)}\n`);
const fileOf = (module) => relative(root, module.moduleId);
/** The form that `vitest -t` compares: the names of the groups and of the test, joined by spaces. */
const nameOf = (test) =>
  test.parent && test.parent.type === 'suite' ? `${nameOf(test.parent)} ${test.name}` : test.name;
const messagesOf = (errors) => errors.map((error) => error.stack || error.message || String(error)).join('\n');

/** The assertion with its difference, then the stack lines in our own files. */
function describe(error) {
  const places = (error.stacks ?? []).map((at) => `    at ${relative(root, at.file)}:${at.line}:${at.column}`);
  const message = error.message ?? String(error);
  return [message, ...(error.diff ? [error.diff] : []), ...places.slice(0, 4)].join('\n');
}

export default class HeartbeatReporter {
  onTestModuleStart(module) {
    write({ is: 'file', file: fileOf(module) });
  }
  onTestCaseReady(test) {
    write({ is: 'start', file: fileOf(test.module), name: nameOf(test) });
  }
  onTestCaseResult(test) {
    const { state, errors = [] } = test.result();
    write({ is: state, file: fileOf(test.module), name: nameOf(test), why: errors.map(describe).join('\n') });
  }
  onTestModuleEnd(module) {
    const errors = module.errors();
    const suites = [...module.children.allSuites()].flatMap((suite) => suite.errors());
    write({ is: 'end', file: fileOf(module), why: messagesOf([...errors, ...suites]) });
  }
  onTestRunEnd(_, errors) {
    write({ is: 'done', why: messagesOf(errors) });
  }
}
