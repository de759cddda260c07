-- read_lanes: the lane registry of this node: every lane with its entry, in no order.
-- KEYS 1 admission · 2 lanes
-- ARGV 1 cluster · 2 node
-- accepted: incarnation · lane, entry, …
-- refused: WRONG_CLUSTER (why: cluster, node; actual) · BAD_ARGUMENT (why) · WRONG_TYPE (why)
-- Works also on a node that is not admitted. docs/PROTOCOL.md section 2.
local admission_key, lanes_key = KEYS[1], KEYS[2]
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
if cluster == '' then return bad('cluster') end

-- common: identity
local record = redis.pcall('HMGET', admission_key, 'cluster', 'node', 'incarnation')
if record.err then return failed(record, admission_key) end
if record[1] then
  if record[1] ~= cluster then return { 'refused', 'WRONG_CLUSTER', 'why', 'cluster', 'actual', record[1] } end
  if record[2] ~= node_id then return { 'refused', 'WRONG_CLUSTER', 'why', 'node', 'actual', record[2] or '' } end
end
local incarnation = record[3] or ''
-- end common

local all = redis.pcall('HGETALL', lanes_key)
if all.err then return failed(all, lanes_key) end
local answer = { 'accepted', incarnation }
for index = 1, #all do answer[index + 2] = all[index] end
return answer
