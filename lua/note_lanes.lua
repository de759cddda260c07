-- note_lanes: store entries of the lane registry. Of two entries for one lane the higher version stays, then the
-- greater writer. So the order in which entries arrive does not matter, and a repeated call changes nothing.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 lanes
-- ARGV 1 cluster · 2 node · 3 version · 4 fills · 5 marks · 6 …pairs
-- accepted: incarnation · changed
-- refused: CONFIG_STALE (actual) · EXPECTATION (why: lanes, incarnation; actual) · WRONG_CLUSTER (why: cluster, node; actual) · NOT_ADMITTED (why: wiped, restarted, damaged, bootstrap, admitting) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- A pair is a lane and `<version> <state> <writer, hex> at=<ms> by=<who> …`. A node takes entries only while it
-- remembers the registry: its memory is that of the bootstrap, or its mark names the memory that counts. `fills` names
-- a memory without a mark, which gets what the others have. With `marks` this call is the last one, and sets the mark.
-- `version` is that of the configuration that the caller counts by. docs/PROTOCOL.md section 2.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lanes_key = KEYS[5]
local cluster, node_id, version, fills, marks, given = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV

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

local MARK = '+memory'
local MOST_PAIRS, MOST_BYTES = 128, 512
local STATES = { open = true, closed = true, removed = true }

-- The version and the writer of an entry. A text that no version of seq wrote has none, and every entry replaces it.
local function rank_of(text)
  if not text or #text > MOST_BYTES then return nil end
  local count, state, writer, at, rest = string.match(text, '^(%d+) (%l+) ([0-9a-f]+) at=(%d+) by=([%w%p][%w%p ]*)$')
  count = whole(count)
  if not count or not STATES[state] or not whole(at) then return nil end
  return count, writer
end

if not marks or not find(version, '^%d*%.?%d*$') then return bad('version') end
if marks ~= '0' and marks ~= '1' then return bad('marks') end
if marks == '1' and fills == '' then return bad('fills') end
if #given % 2 ~= 1 or #given > 5 + 2 * MOST_PAIRS or (#given == 5 and marks == '0') then return bad('pairs') end
local names = {}
for at = 6, #given, 2 do
  local name = given[at]
  if #name > 64 or not find(name, '^[%w_.-]+$') then return bad('lane') end
  if not rank_of(given[at + 1]) then return bad('entry') end
  names[#names + 1] = name
end

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

local stored = redis.pcall('HMGET', lanes_key, MARK, unpack(names))
if stored.err then return failed(stored, lanes_key) end
local config = redis.pcall('HGET', admission_key, 'config')
if type(config) == 'table' then return config end
config = config or ''
if version ~= (string.match(config, '^%S+') or '') then return { 'refused', 'CONFIG_STALE', 'actual', config } end
if fills == '' then
  if stored[1] ~= incarnation and not find(incarnation, '.', 1, true) then
    return { 'refused', 'EXPECTATION', 'why', 'lanes', 'actual', stored[1] or '' }
  end
elseif fills ~= incarnation then
  return { 'refused', 'EXPECTATION', 'why', 'incarnation', 'actual', incarnation }
end

local changes, count = {}, 0
for index, name in ipairs(names) do
  local text = given[2 * index + 5]
  local its_version, writer = rank_of(text)
  local known, known_writer = rank_of(stored[index + 1])
  if not known or its_version > known or (its_version == known and writer > known_writer) then
    changes[#changes + 1] = name
    changes[#changes + 1] = text
    count = count + 1
  end
end
if marks == '1' then
  changes[#changes + 1] = MARK
  changes[#changes + 1] = incarnation
end
if #changes > 0 then
  local first = redis.pcall('HSET', lanes_key, unpack(changes))
  if type(first) == 'table' then return first end
end
return { 'accepted', incarnation, string.format('%d', count) }
