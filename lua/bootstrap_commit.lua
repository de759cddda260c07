-- bootstrap_commit: phase 2 of the bootstrap: if the nonce is still there, admit the node at floor 0, epoch 0.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 orphans
-- The first configuration of the cluster (config) is noted in the record.
-- ARGV 1 cluster · 2 node · 3 nonce · 4 genesis · 5 config · 6 challenge
-- accepted: incarnation
-- refused: STALE_NONCE (actual) · NOT_ADMITTED (why: restarted) · NOT_PRISTINE (why) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- A repeated call on the node that it admitted is accepted again and changes nothing, while the node is at epoch 0.
-- docs/PROTOCOL.md section 8.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local orphans_key = KEYS[5]
local cluster, node_id, nonce, genesis, config = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local challenge = ARGV[6]

-- common: numbers
-- A number of the protocol: digits only, no leading zero, at most 2^48; nil otherwise. No cluster counts up to 2^48. A
-- larger number was written by hand or by mistake. To count on from it would leave the range in which a double is
-- exact.
local find, byte, tonumber = string.find, string.byte, tonumber
local function whole(text)
  if not text or #text > 15 or not find(text, '^%d+$') then return nil end
  local first = byte(text)
  if not first or (first == 48 and #text > 1) then return nil end
  local value = tonumber(text)
  if value > 281474976710656 then return nil end
  return value
end
-- end common
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
-- common: hashes
-- 64 lower-case hex digits. (An anchored repeat costs half as much as a search for a character that is not one.)
local function is_hash(text) return #text == 64 and string.find(text, '^%x+$') ~= nil and string.lower(text) == text end
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

if nonce == '' then return bad('nonce') end
if not is_hash(genesis) then return bad('genesis') end
if not config or #config > 16384 then return bad('config') end
if not challenge then return bad('challenge') end

local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'run', 'incarnation', 'pending', 'challenge')
if record.err then return failed(record, admission_key) end
local token = redis.pcall('GET', epoch_key)
if type(token) == 'table' then return failed(token, epoch_key) end
if not record[1] then return { 'refused', 'STALE_NONCE', 'actual', '' } end
if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
local run = run_id(server, replication, record[3])
if run == '' then return REPLICA end
if not record[5] and record[4] == nonce and record[3] == run and token == '0' then return { 'accepted', nonce } end
if record[5] ~= 'bootstrap:' .. nonce or (challenge ~= '' and challenge ~= record[6]) then
  return { 'refused', 'STALE_NONCE', 'actual', record[5] or '' }
end
if record[3] ~= run then return { 'refused', 'NOT_ADMITTED', 'why', 'restarted' } end
if redis.call('EXISTS', lock_key, epoch_key, stream_key, orphans_key) > 0 then
  return { 'refused', 'NOT_PRISTINE', 'why', 'wiped' }
end

local first = redis.pcall('HDEL', admission_key, 'pending', 'challenge')
if type(first) == 'table' then return first end
must('SET', epoch_key, '0')
must('HSET', admission_key, 'incarnation', nonce, 'claimant', '', 'head', '0', 'head_epoch', '0', 'head_hash', genesis,
  'floor', '0', 'floor_hash', genesis)
if config ~= '' then must('HSET', admission_key, 'config', config) end
return { 'accepted', nonce }
