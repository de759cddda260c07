-- write_block: put one block at its height under the term's epoch and renew the lease. This is the hot path. Height
-- rules: 1-5 of section 4. trim_to (appends only; at most height-2) moves the floor up; trim_hash is the hash of that
-- block. Superseded entries are copied to `orphans`, capped by count and bytes (record field orphans_bytes).
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 orphans · 6 request
-- ARGV 1 cluster · 2 node · 3 owner · 4 writer_epoch_text · 5 ttl_ms · 6 mode · 7 height_text · 8 hash · 9 parent · 10 timestamp_text · 11 entry_epoch_text · 12 trim_to_text · 13 trim_hash · 14 data
-- accepted: incarnation · head · pairs of the pending request when it is meant for this epoch
-- refused: FENCING_ERROR (check: lock, holder; or check: epoch, epoch) · HEIGHT_EXISTS (epoch, hash) · GAP (head) · PARENT_MISMATCH (head, epoch, hash) · TRIMMED (floor) · CONFLICT (epoch, hash) · WRONG_CLUSTER (why: cluster, node; actual) · NOT_ADMITTED (why: wiped, restarted, damaged, bootstrap, admitting) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I2, I3, I6, I8. docs/PROTOCOL.md sections 4, 6. Each condition for an append also stands in `wouldAppend` of
-- src/core/redis/fast-append/watched-state.ts.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local orphans_key, request_key = KEYS[5], KEYS[6]
local cluster, node_id, owner, writer_epoch_text, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local mode, height_text, hash, parent, timestamp_text = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local entry_epoch_text, trim_to_text, trim_hash, data = ARGV[11], ARGV[12], ARGV[13], ARGV[14]

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

local ORPHANS_KEPT, ORPHANS_BYTES = 100, 33554432

local writer_epoch, ttl, height = whole(writer_epoch_text), whole(ttl_ms), whole(height_text)
local entry_epoch, trim_to = entry_epoch_text == writer_epoch_text and writer_epoch or whole(entry_epoch_text), whole(trim_to_text)
if not is_owner(owner) then return bad('owner') end
if not writer_epoch then return bad('epoch') end
if not ttl or ttl == 0 then return bad('ttl_ms') end
if mode ~= 'append' and mode ~= 'repair' then return bad('mode') end
if not height then return bad('height') end
-- One search over all names costs as much as a search over one. Only when it fails, find out which name is bad.
local names = hash .. parent
if #hash ~= 64 or #parent ~= 64 or not find(names, '^%x+$') or string.lower(names) ~= names then return bad(is_hash(hash) and 'parent' or 'hash') end
if not whole(timestamp_text) then return bad('timestamp') end
if not entry_epoch or entry_epoch > writer_epoch then return bad('entry_epoch') end
if trim_to_text ~= '' and (not trim_to or trim_to > height - 2 or not is_hash(trim_hash)) then return bad('trim') end
if not data then return bad('data') end

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
-- common: fencing
-- I3: the lock is mine. The node has promised nothing to a later term, or to another term of the same epoch.
if lock ~= owner then
  if lock then return { 'refused', 'FENCING_ERROR', 'check', 'lock', 'holder', lock } end
  return { 'refused', 'FENCING_ERROR', 'check', 'lock' }
end
if writer_epoch < epoch or (writer_epoch == epoch and claimant ~= owner) then
  return { 'refused', 'FENCING_ERROR', 'check', 'epoch', 'epoch', string.format('%d', epoch) }
end
-- end common

local id, old_id = height_text .. '-' .. entry_epoch_text, record[6] .. '-' .. record[7]
-- What has to be written: nothing, the entry, or the entry in place of the head (the old head is copied to orphans).
local appends, replaces, orphan = false, false, nil

if height <= floor then return { 'refused', 'TRIMMED', 'floor', string.format('%d', floor) } end
if height > head + 1 then return { 'refused', 'GAP', 'head', string.format('%d', head) } end
if height == head + 1 then
  if parent ~= head_hash then
    return { 'refused', 'PARENT_MISMATCH', 'head', string.format('%d', head), 'epoch', string.format('%d', head_epoch), 'hash', head_hash }
  end
  appends = true
elseif height < head then
  local there = redis.call('XRANGE', stream_key, height_text, height_text)[1]
  if not there then return { 'refused', 'NOT_ADMITTED', 'why', 'damaged' } end
  local there_hash = named(there)
  if there_hash ~= hash then
    return { 'refused', 'CONFLICT', 'epoch', string.match(there[1], '-(%d+)$'), 'hash', there_hash or '' }
  end
elseif hash == head_hash then
  replaces = head_epoch < entry_epoch
else
  local exists = head_epoch > entry_epoch or mode == 'append'
  if head_epoch == entry_epoch or not exists then
    orphan = head_epoch < entry_epoch and redis.call('XRANGE', stream_key, old_id, old_id)[1] or nil
    if head_epoch < entry_epoch and not orphan then return { 'refused', 'NOT_ADMITTED', 'why', 'damaged' } end
    local orphan_hash, orphan_parent
    if orphan then orphan_hash, orphan_parent = named(orphan) end
    if not orphan or orphan_parent ~= parent then
      return { 'refused', 'CONFLICT', 'epoch', string.format('%d', head_epoch), 'hash', head_hash }
    end
    if orphan_hash ~= head_hash then return { 'refused', 'NOT_ADMITTED', 'why', 'damaged' } end
    replaces = true
  else
    return { 'refused', 'HEIGHT_EXISTS', 'epoch', string.format('%d', head_epoch), 'hash', head_hash }
  end
end

local orphans_bytes = 0
if orphan then
  local kind = redis.call('TYPE', orphans_key)['ok']
  if kind ~= 'none' and kind ~= 'stream' then return { 'refused', 'WRONG_TYPE', 'why', orphans_key } end
  orphans_bytes = kind == 'stream' and whole(redis.call('HGET', admission_key, 'orphans_bytes')) or 0
end
-- A request that cannot be read must not stop the chain.
local request = redis.pcall('HGETALL', request_key)

-- Renew the lease first: Redis never refuses PEXPIRE for lack of memory, nor a command that follows the first write.
local first = redis.pcall('PEXPIRE', lock_key, ttl_ms)
if type(first) == 'table' then return first end
if orphan then
  local fields, size = orphan[2], 0
  for i = 2, #fields, 2 do size = size + #fields[i] end
  local time = must('TIME')
  fields[#fields + 1] = 'superseded_by'
  fields[#fields + 1] = hash
  fields[#fields + 1] = 'at'
  fields[#fields + 1] = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
  must('XADD', orphans_key, '*', unpack(fields))
  orphans_bytes = orphans_bytes + size
  local kept = must('XLEN', orphans_key)
  while kept > 1 and (kept > ORPHANS_KEPT or orphans_bytes > ORPHANS_BYTES) do
    local oldest = must('XRANGE', orphans_key, '-', '+', 'COUNT', 1)[1]
    local old_fields = oldest[2]
    for i = 2, #old_fields - 4, 2 do orphans_bytes = orphans_bytes - #old_fields[i] end
    must('XDEL', orphans_key, oldest[1])
    kept = kept - 1
  end
  must('HSET', admission_key, 'orphans_bytes', string.format('%d', math.max(0, orphans_bytes)))
end
if appends or replaces then
  local trims = appends and trim_to and trim_to > floor
  -- Within a term these fields stay the same from block to block. Writing them again would cost as much as the fields
  -- that change.
  local same = record[7] == entry_epoch_text and claimant == owner
  if trims then
    must('XADD', stream_key, 'MINID', '=', string.format('%d-0', trim_to + 1), id, 'height', height_text, 'data', data,
      'epoch', entry_epoch_text, 'timestamp', timestamp_text, 'parent', parent, 'hash', hash, 'owner', owner)
    must('HSET', admission_key, 'head', height_text, 'head_hash', hash, 'floor', trim_to_text, 'floor_hash', trim_hash)
  else
    must('XADD', stream_key, id, 'height', height_text, 'data', data, 'epoch', entry_epoch_text, 'timestamp', timestamp_text,
      'parent', parent, 'hash', hash, 'owner', owner)
    if replaces then must('XDEL', stream_key, old_id) end
    must('HSET', admission_key, 'head', height_text, 'head_hash', hash)
  end
  if not same then must('HSET', admission_key, 'head_epoch', entry_epoch_text, 'claimant', owner) end
end
if writer_epoch > epoch then
  must('SET', epoch_key, writer_epoch_text)
  if not (appends or replaces) then must('HSET', admission_key, 'claimant', owner) end
end

local reply = { 'accepted', incarnation, appends and height_text or record[6] }
if not request.err and #request > 0 then
  local meant = false
  for i = 1, #request, 2 do meant = meant or (request[i] == 'epoch' and request[i + 1] == writer_epoch_text) end
  if meant then for i = 1, #request do reply[3 + i] = request[i] end end
end
return reply
