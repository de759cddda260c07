-- announce: write a sequencer's presence record, and its entry in the index. The index lets inspect read records
-- without a scan. The record is `<sequencer><id>`. The index (id → server ms) forgets ids not seen for 24 h and keeps
-- the newest 64.
-- KEYS 1 admission · 2 sequencers · 3 sequencer
-- ARGV 1 cluster · 2 node · 3 ttl_ms · 4 id · 5 …pairs
-- accepted: incarnation · used_memory · maxmemory · time_ms
-- refused: WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- A presence record says nothing about leadership. The script works on a node that is not admitted. The reply has the
-- server's memory use (0 = no limit, or not known), so that a leader can shrink the retained range in time. It also has
-- the server's clock, so that a leader's block time follows the nodes' clocks. docs/PROTOCOL.md sections 2 and 6.
local admission_key, sequencers_key, sequencer_key = KEYS[1], KEYS[2], KEYS[3]
local cluster, node_id, ttl_ms, id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

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

local DAY_MS, KEPT = 86400000, 64

local ttl = whole(ttl_ms)
if not ttl or ttl == 0 then return bad('ttl_ms') end
if id == '' then return bad('id') end
if #ARGV < 6 or #ARGV % 2 ~= 0 or #ARGV > 256 then return bad('pairs') end

-- common: identity
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation')
if record.err then return failed(record, admission_key) end
if record[1] then
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
local incarnation = record[3] or ''
-- end common

local index = redis.pcall('ZCARD', sequencers_key)
if type(index) == 'table' then return failed(index, sequencers_key) end
local known = redis.pcall('HLEN', sequencer_key)
if type(known) == 'table' then return failed(known, sequencer_key) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local memory = redis.pcall('INFO', 'memory')
local function bytes(field) return type(memory) == 'string' and tonumber(string.match(memory, '\n' .. field .. ':(%d+)')) or 0 end
-- Clients' buffers are gone in a moment, and trimming does not free them. So they do not count.
local used = string.format('%d', math.max(0, bytes('used_memory') - bytes('mem_clients_normal')))

local first = redis.pcall('DEL', sequencer_key)
if type(first) == 'table' then return first end
must('HSET', sequencer_key, unpack(ARGV, 5))
must('PEXPIRE', sequencer_key, ttl_ms)
must('ZADD', sequencers_key, string.format('%d', now), id)
must('ZREMRANGEBYSCORE', sequencers_key, '-inf', string.format('(%d', now - DAY_MS))
must('ZREMRANGEBYRANK', sequencers_key, 0, -(KEPT + 1))
return { 'accepted', incarnation, used, string.format('%d', bytes('maxmemory')), string.format('%d', now) }
