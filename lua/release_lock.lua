-- release_lock: give the lock back if it is mine, on an admitted node or not. It may name the only sequencer that may
-- promote next.
-- KEYS 1 lock · 2 admission · 3 handover
-- ARGV 1 cluster · 2 node · 3 owner · 4 handover_to · 5 handover_ttl_ms · 6 channel
-- accepted: incarnation
-- refused: FENCING_ERROR (check: lock, holder) · WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- It never takes a lock and never raises an epoch. It publishes `released`, or `handed-over` if it names a successor.
-- docs/PROTOCOL.md sections 4, 6.
local lock_key, admission_key, handover_key = KEYS[1], KEYS[2], KEYS[3]
local cluster, node_id, owner, handover_to, handover_ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local channel = ARGV[6]

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

local handover_ttl = whole(handover_ttl_ms)
if not is_owner(owner) then return bad('owner') end
if handover_to ~= '' and (not handover_ttl or handover_ttl == 0) then return bad('handover_ttl_ms') end

-- common: identity
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation')
if record.err then return failed(record, admission_key) end
if record[1] then
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
local incarnation = record[3] or ''
-- end common

local lock = redis.pcall('GET', lock_key)
if type(lock) == 'table' then return failed(lock, lock_key) end
local handover = redis.pcall('GET', handover_key)
if type(handover) == 'table' then return failed(handover, handover_key) end
if not lock then return { 'refused', 'FENCING_ERROR', 'check', 'lock' } end
if lock ~= owner then return { 'refused', 'FENCING_ERROR', 'check', 'lock', 'holder', lock } end

local first = redis.pcall('DEL', lock_key)
if type(first) == 'table' then return first end
if handover_to ~= '' then must('SET', handover_key, handover_to, 'PX', handover_ttl_ms) end
redis.pcall('PUBLISH', channel, handover_to == '' and 'released' or 'handed-over')
return { 'accepted', incarnation }
