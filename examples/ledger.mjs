#!/usr/bin/env node
// A double-entry ledger as the producer of a `seq` chain: one file, no dependencies.
//
//   seq lane add ledger
//   seq run … --lane ledger --producer exec -- node examples/ledger.mjs
//   echo '{"from":"world","to":"alice","amount":100}' | seq submit --lane ledger
//
// It needs a chain of its own: a lane is an independent chain on the same servers.
//
// Every item is a transfer {from, to, amount}: what one account loses another gains, so the balances always add up to zero. Money
// enters through the account `world`, the only one that may be overdrawn. The leader's ledger decides which transfers are accepted
// and puts them into the block; every sequencer's ledger applies every committed block, so that all of them hold the same balances
// and any of them can decide next. The state is in memory and rebuilt from block 1 at each start.
//
// LEDGER_STATE=FILE: the balances are written there after each block (whole file or none: written aside, then renamed).
import { renameSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const WORLD = 'world';
const stateFile = process.env.LEDGER_STATE;
const state = { height: 0, hash: '', accepted: 0, refused: 0, balances: new Map() };

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

/** Why a transfer cannot be, given these balances; undefined when it can. */
function objection(transfer, balanceOf) {
  if (typeof transfer !== 'object' || transfer === null) return 'not a transfer';
  const { from, to, amount } = transfer;
  for (const account of [from, to])
    if (typeof account !== 'string' || account === '' || account.length > 64) return 'no account';
  if (from === to) return 'from and to are the same';
  if (!Number.isSafeInteger(amount) || amount <= 0) return 'the amount is not a positive whole number';
  if (from !== WORLD && balanceOf(from) < amount) return 'overdraft';
  if (!Number.isSafeInteger(balanceOf(from) - amount) || !Number.isSafeInteger(balanceOf(to) + amount))
    return 'too large';
  return undefined;
}

function move(balances, balanceOf, { from, to, amount }) {
  balances.set(from, balanceOf(from) - amount);
  balances.set(to, balanceOf(to) + amount);
}

function parse(base64) {
  try {
    return JSON.parse(Buffer.from(base64, 'base64').toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The next block: each item in turn, accepted or refused, judged as if those before it had been applied. Changes no balance. */
function produce({ height, items, maxBytes }) {
  const changed = new Map();
  const balanceOf = (account) => changed.get(account) ?? state.balances.get(account) ?? 0;
  const entries = [];
  let bytes = 2;
  for (const item of items) {
    const transfer = parse(item.data);
    const why = objection(transfer, balanceOf);
    const entry =
      why === undefined ? { from: transfer.from, to: transfer.to, amount: transfer.amount } : { refused: why };
    bytes += Buffer.byteLength(JSON.stringify(entry)) + 1;
    if (bytes > maxBytes) break; // what does not fit is offered again for the next block
    if (why === undefined) move(changed, balanceOf, entry);
    entries.push(entry);
  }
  const data = entries.length === 0 ? '' : JSON.stringify(entries);
  say({ type: 'block', height, data: Buffer.from(data).toString('base64'), taken: entries.length });
}

/** A committed block is a fact: it is applied exactly as it stands. */
function apply({ height, hash, data }) {
  if (height !== state.height + 1) throw new Error(`told of block ${height} after block ${state.height}`);
  const balanceOf = (account) => state.balances.get(account) ?? 0;
  const entries = data === '' ? [] : parse(data);
  if (!Array.isArray(entries)) throw new Error(`block ${height} holds no ledger`);
  for (const entry of entries) {
    if (entry.refused !== undefined) {
      state.refused++;
      continue;
    }
    const why = objection(entry, balanceOf);
    if (why !== undefined) throw new Error(`block ${height} holds a transfer that cannot be: ${why}`);
    move(state.balances, balanceOf, entry);
    state.accepted++;
  }
  state.height = height;
  state.hash = hash;
  save();
  say({ type: 'ack' });
}

function save() {
  if (!stateFile) return;
  const balances = Object.fromEntries([...state.balances].sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(`${stateFile}.new`, `${JSON.stringify({ ...state, balances }, null, 2)}\n`);
  renameSync(`${stateFile}.new`, stateFile);
}

createInterface({ input: process.stdin, crlfDelay: Infinity }).on('line', (line) => {
  try {
    const message = JSON.parse(line);
    if (message.type === 'produce') produce(message);
    else if (message.type === 'committed') apply(message);
    // `revoked` needs nothing: a block changes no balance before it is committed.
  } catch (error) {
    process.stderr.write(`ledger: ${error.message}\n`);
    process.exit(1);
  }
});
say({ type: 'hello', protocol: 1, height: 0 });
