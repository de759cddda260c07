-- read_lanes: the lane registry of this node: every lane with its entry, in no order; and the mark of its memory.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 lanes
-- ARGV 1 cluster · 2 node
-- accepted: incarnation · epoch · config · mark · lane, entry, …
-- refused: WRONG_CLUSTER (why: cluster, node; actual) · NOT_ADMITTED (why: wiped, restarted, damaged, bootstrap, admitting) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- The node remembers the registry when the mark is the incarnation, or when that is the bootstrap's (it has a dot).
-- docs/PROTOCOL.md section 2.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lanes_key = KEYS[5]
local cluster, node_id = ARGV[1], ARGV[2]

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
-- common: admission
-- First identity, then whether this server's memory is known to be intact (section 8). No payload is read: XLEN and the
-- absence of entries above the head show every cut, hole and stray entry that Redis itself can make.
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'run', 'incarnation', 'claimant',
  'head', 'head_epoch', 'head_hash', 'floor', 'floor_hash', 'pending')
if record.err then return failed(record, admission_key) end
local texts = redis.pcall('MGET', lock_key, epoch_key)
if texts.err then return texts end
local lock, token = texts[1], texts[2]
if not lock or not token then
  -- MGET does not report a key of another type: read each key alone.
  lock = redis.pcall('GET', lock_key)
  if type(lock) == 'table' then return failed(lock, lock_key) end
  token = redis.pcall('GET', epoch_key)
  if type(token) == 'table' then return failed(token, epoch_key) end
end
local length = redis.pcall('XLEN', stream_key)
if type(length) == 'table' then return failed(length, stream_key) end
if not record[1] then return { 'refused', 'NOT_ADMITTED', 'why', 'wiped' } end
if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
if record[11] then
  return { 'refused', 'NOT_ADMITTED', 'why', string.sub(record[11], 1, 10) == 'bootstrap:' and 'bootstrap' or 'admitting' }
end
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
local memory = run_id(server, replication, record[3])
if memory == '' then return REPLICA end
if record[3] ~= memory then return { 'refused', 'NOT_ADMITTED', 'why', 'restarted' } end
local incarnation, claimant, head_hash, floor_hash = record[4], record[5], record[8], record[10]
local epoch, head, head_epoch, floor = whole(token), whole(record[6]), whole(record[7]), whole(record[9])
if not (epoch and head and head_epoch and floor and incarnation and claimant and head_hash and floor_hash)
  or length ~= head - floor
  or (length > 0 and #redis.call('XREVRANGE', stream_key, '+', '(' .. record[6] .. '-' .. record[7], 'COUNT', 1) > 0) then
  return { 'refused', 'NOT_ADMITTED', 'why', 'damaged' }
end
-- end common

local all = redis.pcall('HGETALL', lanes_key)
if all.err then return failed(all, lanes_key) end
local config = redis.pcall('HGET', admission_key, 'config')
if type(config) == 'table' then return config end
local answer = { 'accepted', incarnation, string.format('%d', epoch), config or '', '' }
for index = 1, #all, 2 do
  if all[index] == '+memory' then
    answer[5] = all[index + 1]
  else
    answer[#answer + 1] = all[index]
    answer[#answer + 1] = all[index + 1]
  end
end
return answer
