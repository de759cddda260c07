// A child process with faults, for the tests of the exec producer. The first argument is a plan as JSON, { hello, log,
// mode }: what it does wrong, and when. CHILD_LOG gets a line for each message that the child received.
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const plan = JSON.parse(process.argv[2]);
const say = (message) => process.stdout.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
const note = (text) => appendFileSync(plan.log, `${text}\n`);
const base64 = (text) => Buffer.from(text).toString('base64');
const mode = plan.once && existsSync(plan.once) ? 'well' : (plan.mode ?? 'well');
if (plan.once) writeFileSync(plan.once, '');

note(`start ${process.pid}`);
if (mode === 'exit at start') process.exit(3);
process.stderr.write('child speaks\n' + (mode === 'noisy' ? 'x\n'.repeat(500) + 'y'.repeat(10_000) + '\n' : ''));
if (mode === 'ignores SIGTERM') process.on('SIGTERM', () => note('SIGTERM'));
if (mode === 'silent hello') setInterval(() => {}, 1000);
else say({ type: 'hello', protocol: mode === 'other protocol' ? 2 : 1, height: plan.hello ?? 0 });

let held;
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  note(
    message.type === 'committed'
      ? `committed ${message.height} ${Buffer.from(message.data, 'base64')}`
      : message.type === 'produce'
        ? `produce ${message.height}`
        : `${message.type} ${message.reason}`,
  );
  if (message.type === 'committed') {
    if (mode !== 'silent ack') say({ type: 'ack' });
    if (mode === 'acks twice') say({ type: 'ack' });
  }
  if (message.type === 'revoked' && held) say(held);
  if (message.type === 'produce') {
    const texts = message.items.map((item) => `${item.key ?? ''}=${Buffer.from(item.data, 'base64')}`);
    const good = {
      type: 'block',
      height: message.height,
      data: base64(`made ${message.height}: ${texts}`),
      taken: texts.length,
    };
    if (mode === 'poison' && texts.some((text) => text.includes('poison'))) {
      note(`fails at ${texts}`);
      return process.exit(7);
    }
    switch (mode) {
      case 'exits':
        return process.exit(7);
      case 'killed':
        return process.kill(process.pid, 'SIGKILL');
      case 'silent':
        return;
      case 'not JSON':
        return say('hello world');
      case 'not an object':
        return say('17');
      case 'unknown type':
        return say({ type: 'sing' });
      case 'long line':
        return process.stdout.write('x'.repeat(300_000));
      case 'wrong height':
        return say({ ...good, height: message.height + 1 });
      case 'takes too many':
        return say({ ...good, taken: texts.length + 1 });
      case 'takes a fraction':
        return say({ ...good, taken: 0.5 });
      case 'not base64':
        return say({ ...good, data: 'a?b' });
      case 'too large':
        return say({ ...good, data: Buffer.alloc(message.maxBytes + 1).toString('base64') });
      case 'just fits':
        return say({ ...good, data: Buffer.alloc(message.maxBytes).toString('base64') });
      case 'takes one':
        return say({ ...good, taken: 1 });
      case 'holds until revoked':
        return held ? say(good) : (held = good);
      default:
        return say(good);
    }
  }
});
