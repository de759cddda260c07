-- bootstrap_prepare: phase 1 of the bootstrap: write the mark `bootstrap:<nonce>` on a node that has no key of ours. A
-- repeated call with the same nonce notes the run id again, so that a bootstrap can continue after a restart. With the
-- mark the node notes a challenge of its own. Phase 2 brings it back: a copy of both phases cannot admit a node that
-- has lost its memory in between.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 orphans
-- ARGV 1 cluster · 2 node · 3 nonce
-- accepted: incarnation
-- refused: NOT_PRISTINE (why: the state it is in) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I7: a node that may have made a promise never looks new. docs/PROTOCOL.md section 8.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local orphans_key = KEYS[5]
local cluster, node_id, nonce = ARGV[1], ARGV[2], ARGV[3]

-- common: refusals
local function bad(name) return { 'refused', 'BAD_ARGUMENT', 'why', name } end
-- A read failed before anything was written. A key of another type is a refusal; Redis' own errors are passed on
-- unchanged.
local function failed(reply, key)
  if string.find(reply.err, 'WRONGTYPE', 1, true) then return { 'refused', 'WRONG_TYPE', 'why', key } end
  return reply
end
-- end common
-- common: writes
-- After the first write a failure leaves the node half-changed. It must never look like a refusal of Redis, which means
-- that nothing was executed.
local function must(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then error('half done: ' .. reply.err) end
  return reply
end
-- end common
-- common: run id
-- The name of this server's memory: `<run id>+<master_replid>`, the server process and the history of its data. The
-- second part changes whenever another server's data may have replaced this server's data. No value ever comes back. A
-- replica has no memory of its own: ''. A record that version 0.1.0 wrote has no `+`. It is compared in its own form
-- until the next claim notes the new form.
local function after(text, name)
  local _, last = string.find(text, name, 1, true)
  return last and string.sub(text, last + 1, last + 40) or ''
end
local function run_id(server, replication, noted)
  if string.find(replication, 'role:slave', 1, true) then return '' end
  local run = after(server, 'run_id:')
  if not noted or string.find(noted, '+', 1, true) then return run .. '+' .. after(replication, 'master_replid:') end
  local former = after(replication, 'master_replid2:')
  if not string.find(former, '[^0]') then return run end
  return run .. '/' .. former .. ':' .. (string.match(replication, 'second_repl_offset:(%d+)') or '')
end
local REPLICA = { err = 'READONLY a replica has no memory of its own' }
-- end common

if cluster == '' then return bad('cluster') end
if node_id == '' then return bad('node') end
if nonce == '' then return bad('nonce') end

local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'run', 'pending', 'challenge')
if record.err then return failed(record, admission_key) end
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
local run = run_id(server, replication, record[3])
if run == '' then return REPLICA end
local others = redis.call('EXISTS', lock_key, epoch_key, stream_key, orphans_key)
if redis.call('EXISTS', admission_key) == 1 then
  if not record[1] then return { 'refused', 'NOT_PRISTINE', 'why', 'damaged' } end
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
  if record[4] ~= 'bootstrap:' .. nonce or others > 0 then
    local why = 'admitted'
    if record[4] then why = string.sub(record[4], 1, 10) == 'bootstrap:' and 'bootstrap' or 'admitting'
    elseif record[3] ~= run then why = 'restarted' end
    return { 'refused', 'NOT_PRISTINE', 'why', why }
  end
elseif others > 0 then
  return { 'refused', 'NOT_PRISTINE', 'why', 'wiped' }
end

local time = redis.call('TIME')
local first = redis.pcall('DEL', admission_key)
if type(first) == 'table' then return first end
must('HSET', admission_key, 'cluster', cluster, 'node', node_id, 'run', run_id(server, replication), 'pending', 'bootstrap:' .. nonce,
  'challenge', record[5] or time[1] .. '.' .. time[2])
return { 'accepted', '' }
