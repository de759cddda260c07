-- claim: raise this node to the term's epoch and read its head, in one step. acquire_ttl_ms also takes a free lock. The
-- node notes the configuration that the term counts by (config). It refuses a term whose configuration is earlier than
-- the one that the node knows, or another one of the same version. It also refuses a term whose configuration counts
-- another memory of this node. A configuration without this node is noted: it ends what the node was good for.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream
-- ARGV 1 cluster · 2 node · 3 owner · 4 writer_epoch_text · 5 acquire_ttl_ms · 6 config
-- accepted: incarnation · head · head_epoch · head_hash · floor · floor_hash
-- refused: FENCING_ERROR (check: lock, holder; or check: epoch, epoch) · CONFIG_STALE (actual: the configuration it knows; why: other, when both have one version) · NOT_MEMBER (actual: its incarnation) · WRONG_CLUSTER (why: cluster, node; actual) · NOT_ADMITTED (why: wiped, restarted, damaged, bootstrap, admitting) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Keeps I1, I3, I13: after a claim no older term can change the head that is returned. A claim may be repeated.
-- docs/PROTOCOL.md sections 4, 5.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local cluster, node_id, owner, writer_epoch_text, acquire_ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local config = ARGV[6]

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
-- common: owners
-- <sequencer id>/<nonce>
local function is_owner(text) return #text <= 512 and string.find(text, '/', 2, true) ~= nil and string.byte(text, -1) ~= 47 end
-- end common

local writer_epoch, acquire_ttl = whole(writer_epoch_text), whole(acquire_ttl_ms)
if not is_owner(owner) then return bad('owner') end
if not writer_epoch then return bad('epoch') end
if acquire_ttl_ms ~= '' and (not acquire_ttl or acquire_ttl == 0) then return bad('acquire_ttl_ms') end
if not config or #config > 16384 or (config ~= '' and not string.find(config, '^%d+%.%d+ ')) then return bad('config') end

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

local acquiring = acquire_ttl and not lock
if acquiring then lock = owner end
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

-- common: configuration
-- Who the nodes are (`<epoch>.<turn> <settings> | r1=<memory>@<address> …`). `earlier`: whether one version is earlier
-- than another; '' is the earliest.
local function earlier(one, other)
  local epoch, turn = string.match(one, '^(%d+)%.(%d+) ')
  local its_epoch, its_turn = string.match(other, '^(%d+)%.(%d+) ')
  if not its_epoch then return false end
  if not epoch then return true end
  epoch, its_epoch = tonumber(epoch), tonumber(its_epoch)
  return epoch < its_epoch or (epoch == its_epoch and tonumber(turn) < tonumber(its_turn))
end
-- end common

-- Two configurations of one version that differ by more than addresses: one of them was written by hand, or operators
-- have said of two lists that each is complete.
local function contradicts(one, other)
  return not earlier(other, one) and string.gsub(one, '@%S+', '') ~= string.gsub(other, '@%S+', '')
end

local here = redis.pcall('HGET', admission_key, 'config')
if type(here) == 'table' then return here end
here = here or ''
if earlier(config, here) then return { 'refused', 'CONFIG_STALE', 'actual', here } end
if contradicts(config, here) then return { 'refused', 'CONFIG_STALE', 'why', 'other', 'actual', here } end
if config ~= '' then
  local _, last = find(config, ' ' .. node_id .. '=', find(config, '|', 1, true) or #config, true)
  if last and string.match(config, '^[^@ ]+', last + 1) ~= incarnation then
    return { 'refused', 'NOT_MEMBER', 'actual', incarnation }
  end
end

-- A record of version 0.1.0 names the memory in another form. From now on a sequencer of that version sees this node as
-- restarted.
local renamed = not string.find(record[3], '+', 1, true) and run_id(server, replication)
if acquiring or writer_epoch > epoch or here ~= config or renamed then
  local first = redis.pcall('HDEL', admission_key, 'claimant')
  if type(first) == 'table' then return first end
  if acquiring then must('SET', lock_key, owner, 'PX', acquire_ttl_ms) end
  must('SET', epoch_key, string.format('%d', writer_epoch))
  must('HSET', admission_key, 'claimant', owner)
  if here ~= config then must('HSET', admission_key, 'config', config) end
  if renamed then must('HSET', admission_key, 'run', renamed) end
end
return { 'accepted', incarnation, record[6], record[7], head_hash, record[9], floor_hash }
