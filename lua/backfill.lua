-- backfill: step 2 of re-admission: append one committed block to the stream of a node that is being admitted. It
-- renews no lease and sets no epoch. XADD is the first write on purpose: a node that is short of memory refuses it
-- (OOM), and nothing has changed.
-- KEYS 1 admission · 2 stream
-- ARGV 1 cluster · 2 node · 3 owner · 4 writer_epoch_text · 5 nonce · 6 height_text · 7 hash · 8 parent · 9 timestamp_text · 10 entry_epoch_text · 11 data · 12 challenge
-- accepted: incarnation · head
-- refused: STALE_NONCE (actual) · FENCING_ERROR (check: epoch, epoch) · GAP (head) · PARENT_MISMATCH (head, epoch, hash) · TRIMMED (floor) · CONFLICT (epoch, hash) · NOT_ADMITTED (why: wiped, restarted, damaged) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I6, I7. docs/PROTOCOL.md section 8.
local admission_key, stream_key = KEYS[1], KEYS[2]
local cluster, node_id, owner, writer_epoch_text, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local height_text, hash, parent, timestamp_text, entry_epoch_text = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local data, challenge = ARGV[11], ARGV[12]

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
-- common: owners
-- <sequencer id>/<nonce>
local function is_owner(text) return #text <= 512 and string.find(text, '/', 2, true) ~= nil and string.byte(text, -1) ~= 47 end
-- end common
-- common: first entry
-- Hash and parent of a raw entry {id, {field, value, …}}; nil for a missing field.
local function named(entry)
  local hash, parent
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'hash' then hash = entry[2][i + 1] elseif entry[2][i] == 'parent' then parent = entry[2][i + 1] end
  end
  return hash, parent
end
-- end common

local writer_epoch, height, entry_epoch = whole(writer_epoch_text), whole(height_text), whole(entry_epoch_text)
if not is_owner(owner) then return bad('owner') end
if not writer_epoch then return bad('epoch') end
if nonce == '' then return bad('nonce') end
if not height then return bad('height') end
if not is_hash(hash) then return bad('hash') end
if not is_hash(parent) then return bad('parent') end
if not whole(timestamp_text) then return bad('timestamp') end
if not entry_epoch or entry_epoch > writer_epoch then return bad('entry_epoch') end
if not data then return bad('data') end
if not challenge then return bad('challenge') end

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
-- common: admission under way
-- The admission that `nonce` began is still pending and belongs to this term, and the server has not restarted since.
-- `challenge` is what the node answered then: '' from a caller that was not told.
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'run', 'pending', 'pending_owner', 'pending_epoch',
  'head', 'head_epoch', 'head_hash', 'floor', 'floor_hash', 'challenge')
if record.err then return failed(record, admission_key) end
if not record[1] then return { 'refused', 'NOT_ADMITTED', 'why', 'wiped' } end
if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
if record[4] ~= nonce or (challenge ~= '' and challenge ~= record[12]) then
  return { 'refused', 'STALE_NONCE', 'actual', record[4] or '' }
end
if record[5] ~= owner or whole(record[6]) ~= writer_epoch then
  return { 'refused', 'FENCING_ERROR', 'check', 'epoch', 'epoch', record[6] or '0' }
end
local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
if type(server) == 'table' then return server end
if type(replication) == 'table' then return replication end
local memory = run_id(server, replication, record[3])
if memory == '' then return REPLICA end
if record[3] ~= memory then return { 'refused', 'NOT_ADMITTED', 'why', 'restarted' } end
local length = redis.pcall('XLEN', stream_key)
if type(length) == 'table' then return failed(length, stream_key) end
local head, head_epoch, head_hash = whole(record[7]), whole(record[8]), record[9]
local floor, floor_hash = whole(record[10]), record[11]
if not (head and head_epoch and head_hash and floor and floor_hash) or length ~= head - floor
  or (length > 0 and #redis.call('XREVRANGE', stream_key, '+', string.format('(%d-%d', head, head_epoch), 'COUNT', 1) > 0) then
  return { 'refused', 'NOT_ADMITTED', 'why', 'damaged' }
end
-- end common

if height <= floor then return { 'refused', 'TRIMMED', 'floor', string.format('%d', floor) } end
if height > head + 1 then return { 'refused', 'GAP', 'head', string.format('%d', head) } end
if height <= head then
  local there = redis.call('XRANGE', stream_key, height_text, height_text)[1]
  if not there then return { 'refused', 'NOT_ADMITTED', 'why', 'damaged' } end
  local there_hash = named(there)
  if there_hash ~= hash then
    return { 'refused', 'CONFLICT', 'epoch', string.match(there[1], '-(%d+)$'), 'hash', there_hash or '' }
  end
  return { 'accepted', '', string.format('%d', head) }
end
if parent ~= head_hash then
  return { 'refused', 'PARENT_MISMATCH', 'head', string.format('%d', head), 'epoch', string.format('%d', head_epoch), 'hash', head_hash }
end

local first = redis.pcall('XADD', stream_key, string.format('%d-%d', height, entry_epoch), 'height', height_text, 'data', data,
  'epoch', entry_epoch_text, 'timestamp', timestamp_text, 'parent', parent, 'hash', hash, 'owner', owner)
if type(first) == 'table' and first.err then return first end
must('HSET', admission_key, 'head', height_text, 'head_epoch', entry_epoch_text, 'head_hash', hash)
return { 'accepted', '', height_text }
