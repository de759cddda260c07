-- audit: append one operator record to the audit stream, which keeps the newest max_records.
-- KEYS 1 admission · 2 audit
-- ARGV 1 cluster · 2 node · 3 max_records · 4 …pairs
-- accepted: incarnation
-- refused: WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Works also on a node that is not admitted. docs/PROTOCOL.md section 2.
local admission_key, audit_key = KEYS[1], KEYS[2]
local cluster, node_id, max_records = ARGV[1], ARGV[2], ARGV[3]

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

local max = whole(max_records)
if not max or max == 0 then return bad('max_records') end
if #ARGV < 5 or #ARGV % 2 ~= 1 or #ARGV > 257 then return bad('pairs') end

-- common: identity
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation')
if record.err then return failed(record, admission_key) end
if record[1] then
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
local incarnation = record[3] or ''
-- end common

local length = redis.pcall('XLEN', audit_key)
if type(length) == 'table' then return failed(length, audit_key) end

local first = redis.pcall('XTRIM', audit_key, 'MAXLEN', '=', string.format('%d', max - 1))
if type(first) == 'table' and first.err then return first end
must('XADD', audit_key, '*', unpack(ARGV, 4))
return { 'accepted', incarnation }
