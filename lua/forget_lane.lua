-- forget_lane: delete everything that a node holds of a lane that was removed, except its record. The record stays
-- retired: a lane's name is used once, because stores of the old chain would fit a new lane of the same name.
-- KEYS 1 lock · 2 epoch · 3 admission · 4 stream · 5 hold · 6 handover · 7 request · 8 sequencers · 9 sequencer · 10 orphans · 11 audit
-- ARGV 1 cluster · 2 node
-- accepted: incarnation
-- refused: WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Needs a record that retire_node has retired, or none: no node that may still have a vote loses anything.
-- docs/PROTOCOL.md section 4.
local lock_key, epoch_key, admission_key, stream_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local hold_key, handover_key, request_key, sequencers_key = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local sequencer_key, orphans_key, audit_key = KEYS[9], KEYS[10], KEYS[11]
local cluster, node_id = ARGV[1], ARGV[2]

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

if cluster == '' then return bad('cluster') end
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation')
if record.err then return failed(record, admission_key) end
if record[1] then
  if record[1] ~= 'retired:' .. cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
local ids = redis.pcall('ZRANGE', sequencers_key, 0, -1)
if ids.err then return failed(ids, sequencers_key) end

local first = redis.pcall('DEL', stream_key, lock_key, epoch_key, hold_key, handover_key, request_key, sequencers_key, orphans_key, audit_key)
if type(first) == 'table' then return first end
for _, id in ipairs(ids) do must('DEL', sequencer_key .. id) end
must('HDEL', admission_key, 'config', 'used', 'claimant', 'head', 'head_epoch', 'head_hash', 'floor', 'floor_hash')
return { 'accepted', record[3] or '' }
